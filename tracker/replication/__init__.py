"""How trackers keep each other's tables: pushes, pulls, sessions, and the book of trackers."""
