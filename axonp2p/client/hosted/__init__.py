"""Jobs that trackers keep: handing over, copies, and other hosts."""
