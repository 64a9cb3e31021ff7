"""The rows of peers that a tracker knows: index, store, who may add how many, and when to announce again."""
