"""The consequences of redone steps, and evidence that anybody can examine. Pure."""
