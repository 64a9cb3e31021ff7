"""What this machine did, kept for 30 days."""
