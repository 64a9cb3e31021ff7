"""`axon-peer`: the daemon of a volunteer. It admits, limits, carries bytes and counts; it never imports torch."""
