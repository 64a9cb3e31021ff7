"""A program in the background: its unit for systemd, and putting that in place. The text of a unit is its program's."""
