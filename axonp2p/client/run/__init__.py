"""A job's life: hire, send, train, pay, keep, replace who goes."""
