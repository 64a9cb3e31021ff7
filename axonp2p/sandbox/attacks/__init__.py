"""Attacks on the wall of a sandbox, one on each part of it, tried for real and harmless if they succeed.

An attack runs inside the sandbox: it gives back what it got hold of, which breaks the wall, or raises what stopped it.
`attack` says what an attack is, `each_wall` has them, `inside` is the worker that tries them all, and `run` starts that
worker and hears its report. docs/attacks.md lists every attack there is; all others are tests.
"""
