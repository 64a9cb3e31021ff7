"""CONTROL AND SEE: what the daemon tells its owner about itself, and what the owner may tell it."""
