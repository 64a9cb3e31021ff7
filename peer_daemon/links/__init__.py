"""The messages that go out to the client and the members: queues, pace, turns, and the state of the lines."""
