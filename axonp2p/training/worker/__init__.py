"""A member: the program in the sandbox, its rounds, the states it holds, its answers to others."""
