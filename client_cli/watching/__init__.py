"""A job followed in a terminal: its events, its bar, its host."""
