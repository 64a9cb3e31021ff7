"""The owner's commands: one module each, which loads what it needs only when it is used, so that `--help` is quick."""
