"""The coordinator's doors: orders out, what members say in, states and files fetched."""
