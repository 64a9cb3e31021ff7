"""The lending of the machine: offer, leases, tokens, limits, hardware and speed."""
