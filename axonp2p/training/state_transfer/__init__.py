"""States and files in pieces, between members and the client."""
