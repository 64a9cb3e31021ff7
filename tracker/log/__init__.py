"""The Merkle log towards others: its heads and proofs, watching and healing it, backups of it."""
