"""What the owner types: one module a command. Each loads what it needs when it is used, so that `--help` is quick."""
