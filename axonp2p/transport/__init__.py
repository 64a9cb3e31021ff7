"""REACH: bytes to a known peer and back.

Everything is HTTPS with TLS 1.3. Short questions are one POST (`http_caller`); long conversations are a `Session`: a
WebSocket on which the caller has proved its key. `listener` answers both, `dialer` opens both, always pinned to the
fingerprint from a signed row or a tracker's address. A `mesh` is the sessions among the members of one job.

    caller                          listener
      | ---- TLS, pinned fingerprint ---> |
      | <--- Challenge(nonce, peer) ----- |
      | ---- Signed[Hello] -------------> |   the caller's key signs nonce and fingerprint
      | <--- Welcome or Refusal --------- |
      | <--- frames, both ways ---------> |
"""
