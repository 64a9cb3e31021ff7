"""REMEMBER: who did what, provably, later.

A receipt says that a client accepted work of a peer. The client signs it, the peer signs the client's envelope, a
tracker stores it; it counts once, ever. Balances are a fold over receipts.
"""
