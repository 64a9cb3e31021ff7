"""From a search to a lease: candidates, reservations, sessions, and their ends."""
