"""Short questions: one POST, one bounded answer, and pages for the own machine."""
