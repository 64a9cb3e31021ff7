"""CARRY: large content goes out about once, and those who have a piece pass it on.

A bundle is cut into pieces of 256 KiB. Its manifest names each file with the BLAKE3 of every piece, and the bundle
is named by the SHA-256 of its manifest, so who knows the name believes nothing that is not part of it, whoever sends
it. `seeding` decides what the client gives to whom, `swarm` what a member asks of whom; `store` is the disk below.
"""
