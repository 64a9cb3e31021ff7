"""The kinds of work that a job can be: one room each, and one line in `jobs.kinds`."""
