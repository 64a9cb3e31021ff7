"""The process of one hosted job: a client's coordinator that obeys words on its stdin, and dies when that is closed.

So it outlives neither the host nor the host's care for it, however the host ends; peers then wait for it, as they wait
for any client that vanishes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from axonp2p.hosting.host import Host
from axonp2p.hosting.hosted_folder import HostedFolder

MODULE = "axonp2p.client.hosted_run"
EndAs = Literal["paused", "finished", "cancelled", "failed"]
END_WITHIN_S = 60.0
COPY_WITHIN_S = 600.0
UNREAD_BYTES = 4096
"""Words that wait for a process, beyond what the pipe holds."""


@dataclass(frozen=True)
class RunOrders:
    """The arguments of the process on its command line."""

    job: str
    most_bytes: int
    """Of any one file that it writes."""
    trackers: Sequence[str]

    def words(self, folder: HostedFolder) -> list[str]:
        """The command line."""
        told = [word for tracker in self.trackers for word in ("--tracker", tracker)]
        limits = ["--most-bytes", str(self.most_bytes)]
        return [sys.executable, "-P", "-m", MODULE, str(folder.home), self.job, *limits, *told]


class JobProcess:
    """One such process, running."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, folder: HostedFolder, orders: RunOrders, *more: str) -> JobProcess:
        """Raises `OSError` when the system starts no more processes."""
        environment = {name: value for name, value in os.environ.items() if name != "AXON_HOME"}
        with folder.log.open("ab" if more else "wb") as log:  # what a life said before stays until the next life
            process = await asyncio.create_subprocess_exec(
                *orders.words(folder),
                *more,
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder.path,
                env=environment,
                start_new_session=True,
            )
        return cls(process)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        return await self._process.wait()

    def say(self, word: str) -> None:
        """`pause`, `leave`, `stop` or `cancel`; lost when it does not read those that were said before."""
        stdin = self._process.stdin
        if stdin is not None and stdin.transport.get_write_buffer_size() < UNREAD_BYTES:
            stdin.write(f"{word}\n".encode())

    async def kill(self) -> None:
        """At once; returns when it is gone. Harmless when it is."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Program:
    """The program that is run for hosted jobs."""

    async def start(self, folder: HostedFolder, orders: RunOrders) -> JobProcess:
        """Carry the job on. Raises `OSError` when the system starts no more processes."""
        return await JobProcess.start(folder, orders)

    async def end_as(self, folder: HostedFolder, orders: RunOrders, state: EndAs, why: str = "") -> bool:
        """Write down how a job without a process ended; whether that was done."""
        return await _is_done(folder, orders, END_WITHIN_S, "--end-as", state, "--why", why)

    async def copy(self, folder: HostedFolder, orders: RunOrders, host: Host) -> bool:
        """Copy its new parts from there; whether that was done. Parts copied before a cut stay."""
        place = ("--copy-from", str(host.address), "--host", host.peer)
        return await _is_done(folder, orders, COPY_WITHIN_S, *place)


async def _is_done(folder: HostedFolder, orders: RunOrders, within_s: float, *words: str) -> bool:
    try:
        process = await JobProcess.start(folder, orders, *words)
    except OSError:
        return False
    try:
        async with asyncio.timeout(within_s):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        await process.kill()
