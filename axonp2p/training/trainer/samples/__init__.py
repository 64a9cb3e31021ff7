"""Which samples a step reads, and batches made of them."""
