"""Keeps a job behind everything else on the machine.

A nice value orders processes within one session only where Linux groups processes by session (autogroup; on in most
distributions): a single job would get as much of a core as all of the owner's terminal. So the group is lowered as
well, for each process that is found in one that is not, since a job may begin sessions of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from axonp2p.sandbox.family import threads_of

LOWEST = 19


def lower_sessions(pids: Iterable[int]) -> None:
    """Lower the session of each process that is not at the lowest yet. Does nothing where there are no groups."""
    for pid in pids:
        file = Path(f"/proc/{pid}/autogroup")
        try:
            if not file.read_text().endswith(f" nice {LOWEST}\n"):
                file.write_text(str(LOWEST))
        except OSError:
            continue  # no such thing here, or it ended; or a change came within the last tenth of a second: next time


def choose_processors(allowed: Iterable[int], cores: int, taken: Iterable[int]) -> frozenset[int]:
    """So many of the processors that this process may use: those that other workers were given least often, the
    last ones first, since other programs often stay on the first ones."""
    given = list(taken)
    return frozenset(sorted(allowed, key=lambda number: (given.count(number), -number))[: max(1, cores)])


def hold_to(processors: frozenset[int], pids: Iterable[int]) -> None:
    """Let all threads of these processes run on these processors only."""
    for pid in pids:
        try:
            for thread in threads_of(pid):
                if os.sched_getaffinity(thread) != processors:
                    os.sched_setaffinity(thread, processors)
        except OSError:
            continue  # it ended meanwhile
