"""The owner's word: pauses, limits, what runs now, and how that is told."""
