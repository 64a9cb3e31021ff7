"""Gives a job its place behind the other programs of the machine, until it is to end.

Its processes run when no other wants to (SCHED_IDLE), read and write files after all others (idle I/O), and are the
first to go when memory runs out. Only root may take this back again; in particular the job may not. An owner may choose
a higher priority: where other programs never pause, such as another volunteer project, an idle job has no turn at all.

A priority orders processes within one session only where Linux groups processes by session (autogroup; on in most
distributions): a single job would get as much of a core as all of the owner's terminal. So the group is lowered as
well, for each process that is found in one that is not, since a job may begin sessions of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import psutil

from axonp2p.sandbox.limits import NICE, Priority
from axonp2p.sandbox.watch.process_tree import threads_of

_CLASSES = (os.SCHED_IDLE, os.SCHED_BATCH)
_IO = {"idle": (psutil.IOPRIO_CLASS_IDLE,), "low": (psutil.IOPRIO_CLASS_BE, 7)}
_PROCESS_MRELEASE = 448
"""Number of the system call, the same on all processors that have it; since Linux 5.15."""
_system_call = ctypes.CDLL(None).syscall


def lower(pid: int, priority: Priority = "idle") -> None:
    """Give a process, and all that it will start, this priority. Raises `OSError`."""
    os.sched_setscheduler(pid, os.SCHED_IDLE if priority == "idle" else os.SCHED_BATCH, os.sched_param(0))
    # A scheduler of files that knows no such classes ignores them.
    if priority != "normal":
        os.setpriority(os.PRIO_PROCESS, pid, NICE[priority])
        psutil.Process(pid).ionice(*_IO[priority])
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")


def hasten_the_end(pid: int, descriptor: int) -> None:
    """Let a process that was just killed end soon, though it ends only when it is its turn; `descriptor` is its pidfd.

    Its memory is taken from it without its doing, and its session is raised. It keeps its own priority: one that is
    before those of its threads may wait in the kernel, without a pause, for one of them that never has its turn.
    """
    _system_call(_PROCESS_MRELEASE, descriptor, 0)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("0", encoding="ascii")


def lower_sessions(pids: Iterable[int], nice: int) -> None:
    """Give the session of each process this niceness. Does nothing where there are no groups."""
    for pid in pids:
        file = Path(f"/proc/{pid}/autogroup")
        try:
            if not file.read_text().endswith(f" nice {nice}\n"):
                file.write_text(str(nice))
        except OSError:
            continue  # no such thing here, or it ended; or a change came within the last tenth of a second: next time


def hold_to(processors: frozenset[int], pids: Iterable[int]) -> None:
    """Let all threads of these processes run on these processors only."""
    for pid in pids:
        try:
            for thread in threads_of(pid):
                if os.sched_getaffinity(thread) != processors:
                    os.sched_setaffinity(thread, processors)
        except OSError:
            continue  # it ended meanwhile


def processors_taken(allowed: Collection[int], own: Collection[int] = ()) -> Counter[int]:
    """How many processes of a worker's class, those of `own` left out, are held on each of the `allowed` processors.

    These are the workers of all daemons on this machine, as far as /proc shows them.
    """
    taken: Counter[int] = Counter()
    for pid in set(psutil.pids()).difference(own):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if os.sched_getscheduler(pid) in _CLASSES:
                held = os.sched_getaffinity(pid)
                taken.update(held if not held.issuperset(allowed) else ())
    return taken
