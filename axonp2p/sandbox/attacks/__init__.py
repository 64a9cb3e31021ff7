"""Attacks on the wall of a sandbox, each tried for real and harmless if it succeeds.

One file a subject. An attack runs inside the sandbox: it gives back what it got hold of, which breaks the wall, or
raises what stopped it. `attack` says what an attack is, `kernel` asks the kernel without a library between, `inside`
is the worker that tries them all, and `run` starts that worker and hears its report.
"""
