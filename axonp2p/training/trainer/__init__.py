"""The task's own steps: model, data, inner optimiser, outer step, and what is committed to."""
