"""Which trackers and tables this client asks."""
