"""Results on their way: put together from parts, kept in SQLite with the debt for them, and packed for a host."""
