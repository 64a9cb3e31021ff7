"""The client's work with the house: find peers, measure, reserve, send, train, fetch, pay.

The `axon` program and `axonp2p.Swarm` stand on this room; both say the same words.
"""
