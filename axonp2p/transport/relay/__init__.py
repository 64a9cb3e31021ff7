"""A way to peers that nobody can dial: they hold a connection out to a relay, and callers come through it.

    caller                     relay                               peer
      |                          | <--- session: RegisterAtRelay --- |   its key is proved by the session
      |                          | ---- RelayTerms ----------------> |
      | --- CONNECT <peer id> -> |                                   |
      |                          | ---- OpenStream(ticket) --------> |
      |                          | <--- GET /v1/relayed/<ticket> --- |   a fresh connection for this one stream
      | <-- 200 ---------------- | ---- 101 -----------------------> |
      | <========= TLS 1.3 between caller and peer, pinned =========> |   the relay passes bytes on, and can read none

A stream is a connection of its own on both sides: TCP slows down whoever is too fast, no stream waits for another, and
the relay holds no more than a few buffers of each. The limits of streams are decided in `admission`, by numbers alone.
"""
