"""SHOW: the operator's page on loopback, and what a browser finds at the public port.

`overview` says what is told, `recorder` collects it, `render` draws it, `server` and `landing` serve it.
"""
