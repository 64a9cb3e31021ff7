"""One lease, from its session to its end: the worker, what it says, its members, its memory and its pauses."""
