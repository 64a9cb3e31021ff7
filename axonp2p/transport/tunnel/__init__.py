"""A stream through a relay, and TLS inside it."""
