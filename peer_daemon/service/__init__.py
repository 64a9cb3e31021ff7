"""At login, in the background: the unit for systemd, and putting it in place."""
