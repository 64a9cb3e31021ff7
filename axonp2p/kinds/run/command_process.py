"""One copy's command as a child of the worker: started, ended with all of its process group, and what it used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from axonp2p.kinds.run.messages import BeginCopy, CopyExited, EndedBy

PYTHON = "python"
NOT_FOUND = 127
"""The exit code that a shell gives where there is no such program."""
_TICK_S = 1.0
_LONGEST_REASON = 256


def environment_of(order: BeginCopy, out: Path) -> dict[str, str]:
    """The variables of this copy: the worker's own, then the client's, then those that number it."""
    return {
        **os.environ,
        **order.env,
        "AXON_JOB": order.job,
        "AXON_INDEX": str(order.index),
        "AXON_COPIES": str(order.copies),
        "AXON_ATTEMPT": str(order.attempt),
        "AXON_OUT": str(out),
        "RANK": str(order.index),
        "WORLD_SIZE": str(order.copies),
        "LOCAL_RANK": "0",
    }


def not_started(order: BeginCopy, error: Exception) -> CopyExited:
    """The error for a command that could not be started."""
    if isinstance(error, PermissionError):
        reason = f"{order.command[0]} may not be executed in the sandbox: a script is started with python"
    else:
        reason = f"{order.command[0]}: {getattr(error, 'strerror', None) or error}"
    return _exited(order, "not started", code=NOT_FOUND, reason=reason[:_LONGEST_REASON])


class CommandProcess:
    """A command that runs. Raises `OSError` or `ValueError` where it cannot be started."""

    def __init__(self, order: BeginCopy, bundle: Path, environment: Mapping[str, str]) -> None:
        self.order = order
        first, *rest = order.command
        # Its output is seen at once, as the worker's is.
        program = [sys.executable, "-u"] if first == PYTHON else [str(bundle / first)]
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [*program, *rest],
            cwd=bundle,
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ended: EndedBy = "itself"

    def watch(self, exited: Callable[[CopyExited], None]) -> None:
        """Say, on another thread, when it is over."""
        threading.Thread(target=lambda: exited(self._until_the_end()), name="copy", daemon=True).start()
        if self.order.timeout:
            threading.Thread(target=self._end_in_time, name="timeout", daemon=True).start()

    def end(self, why: EndedBy) -> None:
        """Kill it and all of its group; harmless when it is over."""
        with self._lock:
            if not self._over.is_set():
                self._ended = why
                self._kill_group()

    def _until_the_end(self) -> CopyExited:
        pid = self._process.pid
        # Until it was waited for, its number is its own, and that of its group.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            self._kill_group()
            self._over.set()
            _, status, used = os.wait4(pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        return _exited(
            self.order,
            self._ended,
            code=code,
            seconds=time.monotonic() - self._began,
            cpu_seconds=used.ru_utime + used.ru_stime,
            most_memory=used.ru_maxrss * 1024,
        )

    def _end_in_time(self) -> None:
        left = float(self.order.timeout)
        while left > 0:
            before = time.monotonic()
            if self._over.wait(min(left, _TICK_S)):
                return
            # The worker may have stood still meanwhile: its owner's time is not the command's.
            left -= min(time.monotonic() - before, 2 * _TICK_S)
        self.end("timeout")

    def _kill_group(self) -> None:
        """A process that made itself a group of its own lives on until the worker ends, within its limits."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _exited(
    order: BeginCopy,
    ended: EndedBy,
    *,
    code: int,
    seconds: float = 0.0,
    cpu_seconds: float = 0.0,
    most_memory: int = 0,
    reason: str = "",
) -> CopyExited:
    return CopyExited(
        index=order.index,
        attempt=order.attempt,
        ended=ended,
        code=code,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        most_memory=most_memory,
        reason=reason,
    )
