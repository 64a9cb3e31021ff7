"""How much and how fast: windows, queues, token buckets, and what a line is doing."""
