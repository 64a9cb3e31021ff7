"""One module a command or family of commands."""
