"""The links among the members of a job."""
