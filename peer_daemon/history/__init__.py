"""The history of this machine, kept for 30 days."""
