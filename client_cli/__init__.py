"""`axon`: the program of a client."""
