"""What follows from redone steps, and evidence that anybody can examine. Pure."""
