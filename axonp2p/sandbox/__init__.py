"""CONTAIN: a stranger's code behind a wall.

`command_line` (pure) turns limits into a bubblewrap command; `child` runs it and watches it; `channel` is the one
socket on which the worker inside and the daemon outside talk. Without bubblewrap there is no worker.
"""
