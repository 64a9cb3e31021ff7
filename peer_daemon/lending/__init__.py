"""What the machine offers and to whom: leases, tokens, limits, hardware and speed."""
