"""One worker that is started before there is a lease for it, so that no client waits until torch is loaded.

It has loaded our own code and nothing else, behind the same wall as every worker: the folders that it sees as its job's
are empty until a lease takes them over. A lease takes it when it would have started one with the same limits, but for
memory; every other lease starts its own. At most one stands by, with the limits of the last lease that could take one.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.sandbox.child import SandboxedWorker, Usage, WorkerEnd, start_worker
from axonp2p.sandbox.limits import Limits
from axonp2p.supervision import cancel_and_wait
from peer_daemon.execution.lease_context import StartWorker

log = get_logger(__name__)

RETRY_S = 600.0
"""After one that could not be started, or has ended by itself, none is started for so long."""
SETTLES_S = 10.0
"""Leases of other work end the one that stands by only after so long, and none is started for so long after them: jobs
come in series, and a series of short ones would wait again and again until torch is ended and loaded."""
_FOLDER = 0o755
_JOB, _BLOBS = "bundle", "blobs"


@dataclass(frozen=True)
class _Standby:
    worker: SandboxedWorker
    folder: Path
    limits: Limits
    end: asyncio.Task[WorkerEnd]
    stands: asyncio.Task[bool]
    """Whether its sandbox is whole; until then its folders keep their names."""

    def move(self, job_folder: Path, blobs: Path) -> None:
        """It sees these two folders from now on. Raises `OSError`."""
        (self.folder / _JOB).rename(job_folder)
        (self.folder / _BLOBS).rename(blobs)
        self.folder.rmdir()

    def fits(self, limits: Limits) -> bool:
        """Whether a lease with these limits can have it."""
        stands = self.stands.done() and self.stands.result() and not self.end.done()
        return stands and replace(limits, memory_mb=self.limits.memory_mb) == self.limits


class StandbyWorkers:
    """Those of one daemon, which starts all its workers here."""

    def __init__(self, jobs: Path, program: str, like: Limits, clock: Clock, start: StartWorker = start_worker) -> None:
        """`jobs`: where leases have their folders. `program`: what stands by, or "". `like`: the first one's limits."""
        self._jobs = jobs
        self._program = program
        self._like = like
        self._clock = clock
        self._start = start
        self._numbers = itertools.count(1)
        self._standby: _Standby | None = None
        self._wanted = self._last_was_other = False
        self._free, self._free_since = True, float("-inf")
        self._news = asyncio.Event()
        self._not_before = float("-inf")
        self._ended_cpu_s = 0.0

    @property
    def pids(self) -> list[int]:
        """The first process of the one that stands by, if one does."""
        return [self._standby.worker.pid] if self._standby else []

    def usage(self) -> Usage:
        """The resources that the standby worker uses now, with the processor time of those that were dropped."""
        if self._standby is None:
            return Usage(0, self._ended_cpu_s, 0)
        now = self._standby.worker.usage()
        return replace(now, cpu_seconds=now.cpu_seconds + self._ended_cpu_s)

    def follow(self, *, room: bool, free_slots: int) -> None:
        """Whether the machine has room for one now, and how many slots have no job; told again and again.

        Without room it ends at once, whatever the slots are.
        """
        now, free = self._clock.monotonic(), free_slots > 0
        if free != self._free:
            self._free, self._free_since = free, now
        settled = now - self._free_since >= SETTLES_S
        if free:
            fits = self._standby is not None or settled or not self._last_was_other
        else:
            fits = self._standby is not None and not settled
        self._want(bool(self._program) and room and fits)

    def _want(self, one: bool) -> None:
        self._wanted = one
        self._news.set()

    async def run(self) -> None:
        """Start and end them as `follow` decides, until cancelled; then none stands by any more."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                if self._standby is not None and self._standby.end.done():
                    log.warning("the worker that stood by has ended", reason=self._standby.end.result().reason)
                    self._put_off()
                    await self._drop()
                if not self._wanted:
                    await self._drop()
                elif self._standby is None and self._clock.monotonic() >= self._not_before:
                    await self._begin()
        finally:
            await self._drop()

    async def __call__(
        self, job_folder: Path, limits: Limits, *, program: str, data: Mapping[str, Path], blobs: Path
    ) -> SandboxedWorker:
        """A worker that sees the empty folders `job_folder` and `blobs` as its job's.

        Raises as `sandbox.child.start_worker` does.
        """
        self._last_was_other = program != self._program or limits.gpu is not None or bool(data)
        if not self._last_was_other:
            # Its memory is bound on the lease: until then it has what loading takes, however little a client asks for.
            self._like = replace(limits, memory_mb=self._like.memory_mb)
            if self._standby is not None and self._standby.fits(limits):
                standby, self._standby = self._standby, None
                if await self._binds(standby, job_folder, blobs, limits):
                    return standby.worker
            self._want(False)  # what it holds is the job's, until somebody looks again
        return await self._start(job_folder, limits, program=program, data=data, blobs=blobs)

    async def _binds(self, standby: _Standby, job_folder: Path, blobs: Path, limits: Limits) -> bool:
        """Whether it works for the lease from now on; else it is ended."""
        try:
            # The sandbox shows a folder, whatever it is called; an empty one gives way to it.
            await asyncio.to_thread(standby.move, job_folder, blobs)
            standby.worker.bind(limits.memory_mb)
        except BaseException as error:
            await self._end(standby)
            if not isinstance(error, OSError):
                raise
            log.warning("the worker that stood by could not be taken", reason=str(error))
            return False
        log.debug("the worker that stood by was taken", memory_mb=limits.memory_mb)
        standby.end.cancel()
        return True

    async def _begin(self) -> None:
        folder, limits = self._jobs / f"standby-{next(self._numbers)}", self._like
        try:
            await asyncio.to_thread(_make, folder)
            worker = await self._start(folder / _JOB, limits, program=self._program, data={}, blobs=folder / _BLOBS)
        except (AxonError, OSError) as error:
            log.warning("no worker stands by", reason=str(error))
            self._put_off()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            return
        log.debug("a worker stands by", cores=limits.cores, memory_mb=limits.memory_mb)
        end, stands = asyncio.create_task(worker.wait()), asyncio.create_task(_stands(worker))
        self._standby = _Standby(worker, folder, limits, end, stands)

    def _put_off(self) -> None:
        self._not_before = self._clock.monotonic() + RETRY_S

    async def _drop(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None:
            await self._end(standby)

    async def _end(self, standby: _Standby) -> None:
        await cancel_and_wait(standby.stands)
        self._ended_cpu_s += standby.worker.usage().cpu_seconds
        await standby.worker.kill()
        await standby.end
        await asyncio.to_thread(shutil.rmtree, standby.folder, ignore_errors=True)


async def _stands(worker: SandboxedWorker) -> bool:
    with suppress(AxonError):  # it has ended; the next look says so
        await worker.stand_by()
        return True
    return False


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for shown in (folder / _JOB, folder / _BLOBS):
        shown.mkdir()
        shown.chmod(_FOLDER)  # whatever the umask is: the worker may be another user
