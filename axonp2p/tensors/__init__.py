"""The floor above the torch line: state dicts to flat vectors, tensors to bytes and back."""
