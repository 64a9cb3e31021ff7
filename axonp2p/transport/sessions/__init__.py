"""Listening and calling: connections, the handshake's sessions, and their lines."""
