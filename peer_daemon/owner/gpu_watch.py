"""Looks at the cards that are lent, ends a worker that uses too much of one, and gives back what its owner uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

from axonp2p.clock import Clock
from axonp2p.logs import get_logger
from axonp2p.sandbox.watch.process_tree import descendants
from peer_daemon.execution.job_runner import JobRunner
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.gpus.gpu_use import GpuHolder, OwnersUse, why_over
from peer_daemon.gpus.nvml import NvmlLook
from peer_daemon.gpus.seen_gpus import Looks
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.lending.lent_gpus import GpuAssignment

log = get_logger(__name__)

BACK_WITHIN_S = 5.0
"""How long a client has to take its work back when the card is wanted, in seconds."""
_PROCESSES = 4096


class GpuWatch:
    """The cards of one daemon; costs nothing where none is lent."""

    def __init__(
        self,
        gpus: GpuAssignment,
        running_leases: RunningLeases,
        clock: Clock,
        open_look: Callable[[Iterable[str]], NvmlLook] = NvmlLook,
    ) -> None:
        self._gpus = gpus
        self._running_leases = running_leases
        self._clock = clock
        self._open_look = open_look
        self._use = OwnersUse()
        self._looked_at: frozenset[str] = frozenset()
        self._look: NvmlLook | None = None
        self._power: dict[str, int] = {}

    async def look(self, settings: IdleSettings) -> bool:
        """Look once, and act; True when the row must say something else of the cards."""
        runners = {runner.lease.gpu.uuid: runner for runner in self._running_leases.runners if runner.lease.gpu}
        uuids = frozenset(gpu.access.uuid for gpu in self._gpus.gpus) | runners.keys()
        if not uuids and self._look is None:
            return False
        looks = await asyncio.to_thread(self._looks, uuids)
        await asyncio.to_thread(self._hold_power, runners.keys(), settings.gpu_power_percent)
        holders = {uuid: _holder(runner) for uuid, runner in runners.items()}
        for uuid, holder in holders.items():
            if uuid in looks and (why := why_over(looks[uuid], holder)):
                runners[uuid].end_over("gpu-memory", why)
        wanted = self._use.decide(looks, holders, settings.hottest_c, self._clock.monotonic())
        for uuid in wanted.keys() & runners.keys():
            runners[uuid].hand_back(wanted[uuid], BACK_WITHIN_S)
        news = self._gpus.wanted(wanted)
        if news:
            log.info("gpus wanted by their owner", why="; ".join(wanted.values()) or "none")
        return news

    def close(self) -> None:
        """Let go of the driver."""
        if self._look is not None:
            self._look.close()
            self._look = None
            self._power = {}

    def _looks(self, uuids: frozenset[str]) -> Looks:
        if self._look is None or uuids != self._looked_at:
            self.close()
            self._look, self._looked_at = self._open_look(uuids), uuids
        return self._look.look()

    def _hold_power(self, held: Collection[str], percent: int) -> None:
        """Cards that a job has draw so many percent; the others what they did before."""
        assert self._look is not None
        for uuid in [uuid for uuid, now in self._power.items() if uuid not in held or now != percent]:
            self._look.free_power(uuid)
            del self._power[uuid]
        for uuid in held if percent else ():
            if uuid not in self._power:
                self._power[uuid] = percent
                if why := self._look.hold_power(uuid, percent):
                    log.warning("power of a gpu not limited", gpu=uuid, reason=why, fix="run axon-peer as root")


def _holder(runner: JobRunner) -> GpuHolder:
    assert runner.lease.gpu is not None
    pids = descendants(runner.worker_pid, _PROCESSES) if runner.worker_pid else []
    return GpuHolder(frozenset(pids), runner.lease.gpu.memory_mb)
