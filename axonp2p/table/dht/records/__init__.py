"""Rows as the DHT keeps them: forms, store, samples and bounds. Pure."""
