"""Calls to peers and trackers, to see who can be reached from outside."""
