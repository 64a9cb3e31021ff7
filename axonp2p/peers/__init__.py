"""FIND: what a peer offers, how far away it is, and which peers suit a need."""
