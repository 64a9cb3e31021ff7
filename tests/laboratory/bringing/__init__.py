"""A kind of work whose driver brings a file to its peers while they work: `kind = "bringing"`."""
