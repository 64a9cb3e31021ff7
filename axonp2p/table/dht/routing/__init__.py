"""Keys, contacts, buckets and lookups. Pure."""
