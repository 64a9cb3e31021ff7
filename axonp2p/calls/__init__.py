"""Functions and arguments to bytes, and back in the sandbox alone.

A pickle can run any code where it is opened. So it travels in one direction only: the client packs (`packing`), a
worker behind the wall opens (`opening`), and import-linter keeps `opening` out of every program and of the client. The
results are data (`axonp2p.values`).

Arrays of 16 KB and more are taken out of the pickle. Each is a blob, named by the SHA-256 of its bytes, so an array
that is in a thousand calls travels once.
"""
