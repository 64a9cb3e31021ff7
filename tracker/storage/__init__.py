"""The tracker's SQLite file: schema, the log's entries and tiles, and damage found and mended."""
