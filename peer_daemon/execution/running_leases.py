"""All leases that are carried out now, as the owner sees them: stopped, let go on, handed back together."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from peer_daemon.execution.job_runner import JobRunner
from peer_daemon.execution.standby import StandbyWorkers


@dataclass(frozen=True)
class Used:
    """The resources that all workers used: CPU seconds since the daemon was started, MiB now."""

    cpu_seconds: float
    memory_mb: int


class RunningLeases:
    """The runners of one daemon. One that comes while all stand still stands still too."""

    def __init__(self, standby: StandbyWorkers | None = None) -> None:
        """The use of `standby` is theirs as well."""
        self._standby = standby
        self._runners: dict[str, JobRunner] = {}
        self._idle: set[str] = set()
        self._still_because = ""
        self._ended_cpu_s = 0.0

    @property
    def runners(self) -> list[JobRunner]:
        """Those that live."""
        return list(self._runners.values())

    def find(self, reservation: str) -> JobRunner | None:
        """The one of that reservation."""
        return self._runners.get(reservation)

    async def add(self, runner: JobRunner) -> None:
        """A lease was taken."""
        self._runners[runner.lease.reservation] = runner
        if self._still_because:
            await runner.suspension.begin(self._still_because)

    def remove(self, runner: JobRunner) -> None:
        """Nothing of it is left."""
        self._ended_cpu_s += runner.usage().cpu_seconds
        del self._runners[runner.lease.reservation]

    async def stop_all(self, reason: str) -> None:
        """No worker runs when this returns."""
        self._still_because = reason
        await asyncio.gather(*(runner.suspension.begin(reason) for runner in self.runners))

    async def let_go_on(self) -> None:
        """All go on."""
        self._still_because = ""
        await asyncio.gather(*(runner.suspension.end() for runner in self.runners))

    def look(self, now: float) -> bool:
        """End each lease under which nothing is done, or for which nothing is paid. `now`: monotonic seconds.

        True when another lease than before is idle by now, or one is no more.
        """
        for runner in self.runners:
            runner.look(now)
        before, self._idle = self._idle, {runner.lease.reservation for runner in self.runners if runner.idle_s}
        return before != self._idle

    def hand_back(self, reason: str, seconds: float, *, noted: str = "") -> None:
        """End every lease within `seconds`; 0: at once. Clients read `reason`, the owner's history `noted`."""
        for runner in self.runners:
            runner.hand_back(reason, seconds, noted=noted)

    def hold_to(self, cores: int) -> None:
        """Each worker may use so many cores at most; 0: as many as its lease says."""
        for runner in self.runners:
            runner.hold_to(cores)

    def pids(self) -> list[int]:
        """The daemon's own process and the first of each worker."""
        standing = self._standby.pids if self._standby else []
        return [os.getpid(), *standing, *(runner.worker_pid for runner in self.runners if runner.worker_pid)]

    def used(self) -> Used:
        """By all, those that have ended included."""
        each = [runner.usage() for runner in self.runners] + ([self._standby.usage()] if self._standby else [])
        cpu_seconds = self._ended_cpu_s + sum(one.cpu_seconds for one in each)
        return Used(cpu_seconds, sum(one.memory_bytes for one in each) // 2**20)
