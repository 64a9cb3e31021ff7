"""Calls of a program: `executor` takes them, `calls_store` has them on disk, `live_calls` tells the driver of them."""
