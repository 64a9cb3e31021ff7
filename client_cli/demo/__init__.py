"""`axon demo`: a swarm of real programs on this machine, and its report."""
