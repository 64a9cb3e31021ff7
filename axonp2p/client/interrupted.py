"""Ctrl-C in a person's own program: its jobs are left, which is said in a line, and no traceback hides that."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from axonp2p.console import INTERRUPTED_EXIT


class ProgramInterrupted(SystemExit, KeyboardInterrupt):
    """Ends a program without a traceback, and is a KeyboardInterrupt for whoever waits for one."""


def interrupted(jobs: Sequence[str]) -> ProgramInterrupted | None:
    """Say which jobs were left; what to raise instead of a KeyboardInterrupt, None at a prompt or in a notebook."""
    for job in jobs:
        print(f'interrupted: {job} is paused; swarm.resume("{job}") continues it', file=sys.stderr)
    if not jobs or sys.flags.interactive or hasattr(sys, "ps1"):
        return None
    return ProgramInterrupted(INTERRUPTED_EXIT)
