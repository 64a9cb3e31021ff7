"""WHO: a key is a name.

Every peer, client and tracker holds one Ed25519 key. The public key is its id: 52 lower-case base32 letters, of
which people see the first 8. Every signature names its purpose, so that nothing signed for one use fits another.
The same key signs the TLS certificate, whose SHA-256 others pin.
"""
