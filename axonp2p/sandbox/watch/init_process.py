"""The first process of a sandbox: lowered before anything runs in it, and ended with all that came of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from functools import partial

from axonp2p.sandbox.limits import Priority
from axonp2p.sandbox.watch.priority import hasten_the_end, lower
from axonp2p.sandbox.watch.process_tree import birth, descendants, read, signal_process

_AT_ONCE = 100
"""Processes that are ended one by one; the kernel ends all others with the first."""


class InitProcess:
    """The first process of a sandbox's PID namespace. When it has ended, the kernel has ended all others."""

    def __init__(self, pid: int) -> None:
        """Raises `ProcessLookupError` when it has ended already."""
        self.pid = pid
        self.killed = False
        # A pidfd and not the number, which the kernel may give to another process.
        self._descriptor = os.pidfd_open(pid)

    def lower(self, priority: Priority) -> None:
        """Give it this priority; everything else on the machine is spared when memory runs out.

        To be called before the sandbox has other processes: all that it starts inherit it. Raises `OSError`.
        """
        lower(self.pid, priority)

    def kill(self) -> None:
        """End all processes of the sandbox; from any thread. Nothing after `close`.

        Nothing may come before the first one's end, which forbids new processes: a fork bomb of root's, whom no
        number of processes holds, grows by thousands a second. The others are hastened only then.
        """
        if self._descriptor < 0:
            return
        self.killed = True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            hasten_the_end(self.pid, self._descriptor)
        for pid in descendants(self.pid, _AT_ONCE):
            with contextlib.suppress(OSError):  # it ended meanwhile
                born = birth(read(f"/proc/{pid}/stat"))
                signal_process(pid, born, signal.SIGKILL, then=partial(hasten_the_end, pid))

    async def ended(self) -> None:
        """Wait until no process of the sandbox is left."""
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        loop.add_reader(self._descriptor, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(self._descriptor)

    def close(self) -> None:
        """Let go of the descriptor; once, last."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
