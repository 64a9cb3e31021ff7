"""Packages that jobs bring along: what the owner takes, how a wheel is unpacked behind the wall, what is kept."""
