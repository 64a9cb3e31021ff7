"""BRING: packages that a job brings along as wheels: their names and platforms, and how they are unpacked."""
