"""The code and data of a job: received, kept, and passed on to the other members."""
