"""PROMISE: what is to be done, in which state it is, who reads which data; and how a client tells a peer of it."""
