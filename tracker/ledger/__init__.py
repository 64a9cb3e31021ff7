"""Receipts, reservations and convictions: what is taken, what counts, what stands."""
