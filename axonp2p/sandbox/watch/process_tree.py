"""The processes of a sandbox as /proc shows them to whoever stands outside of it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import psutil


def descendants(first: int, enough: int) -> list[int]:
    """`first` and all processes below it; stops soon after `enough` were found."""
    if not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
        # A kernel without CONFIG_PROC_CHILDREN: look through all processes of the machine.
        try:
            return [first, *(child.pid for child in psutil.Process(first).children(recursive=True))]
        except psutil.NoSuchProcess:
            return []
    found: list[int] = []
    waiting = [first]
    while waiting and len(found) <= enough:
        pid = waiting.pop()
        found.append(pid)
        try:
            for thread in threads_of(pid):
                waiting += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
        except OSError:
            continue  # it ended meanwhile
    return found


def threads_of(pid: int) -> list[int]:
    """The threads of a process. Raises `OSError` when it has ended."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]


def signal_process(pid: int, born: int, number: signal.Signals, then: Callable[[int], None] | None = None) -> None:
    """Send a signal to the process that was given that number at tick `born`, and to no later one of that number.

    `then` gets its pidfd afterwards. Does nothing when the process is gone.
    """
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if birth(read(f"/proc/{pid}/stat")) == born:
                signal.pidfd_send_signal(descriptor, number)
                if then is not None:
                    then(descriptor)
        finally:
            os.close(descriptor)


def birth(stat: str) -> int:
    """When a process was started, in ticks since the machine was, from /proc/PID/stat."""
    return int(_fields(stat)[19])


def state(stat: str) -> str:
    """The state of a process or thread, one letter: R runs, S sleeps, D waits deeply, T and t stand still, Z ended."""
    return _fields(stat)[0]


def _fields(stat: str) -> list[str]:
    # The name, in brackets, may hold spaces and brackets.
    return stat.rpartition(")")[2].split()


def read(path: str) -> str:
    """The text of a file of /proc, whatever bytes a job put into its names. Raises `OSError`."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
