"""A job's life: hire, send, drive, pay, keep, replace who goes."""
