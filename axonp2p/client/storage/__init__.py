"""A job's folder: record, events, metrics, states, books, and what the client knows of peers."""
