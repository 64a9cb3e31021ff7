"""Numbers of users whom nobody is, for the workers of a daemon that runs as root (`drop_privileges`). Decides only."""

from __future__ import annotations

FIRST_USER = 0x7A000000
"""Linux distributions and systemd give out no numbers from here on, not for containers either."""
RANGE = 0xFF000000
"""The bits that all of the range have in common."""
STEP_DOWN = "axonp2p.sandbox.walls.drop_privileges"


def arguments(user: int | None, run: list[str]) -> list[str]:
    """`run`, a module and its arguments, for an interpreter that becomes `user` first; None: it stays who it is."""
    return ["-s", "-P", "-m", *((STEP_DOWN, str(user)) if user is not None else ()), *run]
