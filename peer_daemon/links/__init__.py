"""What goes out to the client and the members: queues, pace, turns, and how the lines are doing."""
