"""A job's folder: record, events, states, and what the client knows of peers."""
