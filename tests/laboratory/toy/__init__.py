"""The smallest kind of work: `kind = "toy"`. A worker squares a number. `docs/adding-a-kind.md` reads it."""
