"""Packages that a job brings along: resolved here as wheels for the platforms of its peers, and kept for later jobs."""
