"""This peer's own row, and when and where it is announced."""
