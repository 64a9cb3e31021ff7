"""Chunks at peers: who has room for one, how large it is, which are copied or taken back, and where calls failed."""
