"""The machine of the rounds: who takes part, what an attempt waits for, when a round counts. Pure."""
