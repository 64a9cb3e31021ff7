"""The owner's view and control of the peer: command line and page talk to this one object (`control.api.Steering`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import axonp2p
from axonp2p.clock import Clock
from axonp2p.identity.peer_id import short
from axonp2p.settings import PeerSettings
from peer_daemon.control.status import (
    HistoryTold,
    JobNow,
    LedgerNow,
    LimitsAsked,
    LimitsNow,
    MachineNow,
    NetworkNow,
    Status,
)
from peer_daemon.earnings.earnings import Earnings
from peer_daemon.execution.job_runner import JobRunner
from peer_daemon.gpus.gpu_lending import checks_of_gpus
from peer_daemon.gpus.seen_gpus import SeenGpus
from peer_daemon.idle.decision import Readings
from peer_daemon.lending.offer import MeasuredMachine
from peer_daemon.owner.idle_supervisor import IdleSupervisor, Supervised
from peer_daemon.owner.limits_file import change_limits


@dataclass(frozen=True)
class Myself:
    """The facts about the peer that do not change while the daemon runs."""

    home: Path
    name: str
    peer: str
    machine: MeasuredMachine
    clock: Clock


class OwnerApi:
    """One daemon's. `settings_changed` puts new settings into force; `network` says how the peer is to be found,
    `ledger` what trackers have proved of its receipts.
    """

    def __init__(
        self,
        myself: Myself,
        settings: PeerSettings,
        supervised: Supervised,
        idle_supervisor: IdleSupervisor,
        earnings: Earnings,
        network: Callable[[], NetworkNow],
        ledger: Callable[[], LedgerNow],
        settings_changed: Callable[[PeerSettings], None],
    ) -> None:
        self._myself = myself
        self._settings = settings
        self._supervised = supervised
        self._idle_supervisor = idle_supervisor
        self._earnings = earnings
        self._network = network
        self._ledger = ledger
        self._settings_changed = settings_changed
        self.page = ""
        """Address of the status page, once it is open."""

    def status(self) -> Status:
        """Everything, as it is now."""
        now, myself, idle_supervisor = self._myself.clock.now(), self._myself, self._idle_supervisor
        effective_state = idle_supervisor.effective_state
        network = self._network()
        return Status(
            version=axonp2p.__version__,
            name=myself.name,
            peer=myself.peer,
            state=effective_state.state,
            why=effective_state.why,
            sentence=effective_state.sentence,
            since=idle_supervisor.since,
            until=effective_state.until,
            findable=bool(network.address),
            now=now,
            jobs=[_job(runner, now, myself.machine.gpus) for runner in self._supervised.running_leases.runners],
            machine=_machine(
                myself.machine,
                idle_supervisor.readings,
                lends_gpu=self._settings.gpu,
                standby_mb=self._supervised.standby.usage().memory_bytes // 2**20,
            ),
            limits=_limits(self._settings, self._supervised),
            credits=self._earnings.credits(now),
            done=self._earnings.done(),
            network=network,
            ledger=self._ledger(),
            page=self.page,
        )

    async def pause(self, seconds: float | None) -> None:
        """Stop working, for so long or until `resume`. Raises `SettingsError` for no such time."""
        self._supervised.orders.pause(seconds, self._myself.clock.now())
        await self._idle_supervisor.happened("paused", f"paused for {_span(seconds)}" if seconds else "paused")
        await self._obeyed()

    async def finish(self) -> None:
        """End the rounds that run, then pause."""
        self._supervised.orders.finish()
        await self._idle_supervisor.happened("paused", "told to finish what runs, then to pause")
        await self._obeyed()

    async def resume(self) -> None:
        """Work again."""
        self._supervised.orders.resume()
        await self._idle_supervisor.happened("resumed", "told to work again")
        await self._obeyed()

    async def change_limits(self, asked: LimitsAsked) -> None:
        """Change what is allowed, in config.toml and at once. Raises `SettingsError`."""
        changed = await asyncio.to_thread(change_limits, self._myself.home, self._settings, asked, self._myself.machine)
        self._settings_changed(changed)
        self._settings = changed
        await self._idle_supervisor.happened("limits", "the limits were changed")
        await self._obeyed()

    async def history(self, since: float) -> HistoryTold:
        """The history since then, Unix seconds, as far as it was kept. Raises `SettingsError`."""
        return await asyncio.to_thread(self._supervised.history.since, since)

    async def changed(self, after: int) -> int:
        """Wait until the machine was looked at again after look number `after`; its number."""
        idle_supervisor = self._idle_supervisor
        async with idle_supervisor.looked:
            await idle_supervisor.looked.wait_for(lambda: idle_supervisor.looks > after)
        return idle_supervisor.looks

    async def _obeyed(self) -> None:
        """So that who asks for the status next sees what they ordered."""
        await self._idle_supervisor.look()


def _job(runner: JobRunner, now: float, gpus: SeenGpus) -> JobNow:
    lease, used = runner.lease, runner.usage()
    return JobNow(
        job=lease.job,
        client=short(lease.client),
        since=lease.taken_at,
        until=lease.until,
        cores=lease.cores,
        memory_mb=used.memory_bytes // 2**20,
        memory_limit_mb=lease.memory_mb,
        cpu_seconds=round(used.cpu_seconds, 1),
        round=runner.rounds,
        frozen=runner.suspension.frozen,
        gpu=next((card.name for card in gpus.cards if lease.gpu and card.uuid == lease.gpu.uuid), ""),
    )


def _machine(machine: MeasuredMachine, readings: Readings, *, lends_gpu: bool, standby_mb: int) -> MachineNow:
    gpus = checks_of_gpus(machine.gpus, allowed=lends_gpu) if machine.gpus.cards or machine.gpus.others else ()
    return MachineNow(
        cores=machine.cores,
        memory_mb=machine.memory_mb,
        others_cpu_percent=round(100 * readings.others_cpu, 1),
        memory_free_mb=readings.memory_free_mb,
        disk_free_mb=readings.disk_free_mb,
        on_battery=readings.on_battery,
        battery_percent=readings.battery_percent,
        temperature_c=readings.temperature_c,
        input_idle_s=readings.input_idle_s,
        gpus=[check.text for check in gpus],
        standby_mb=standby_mb,
    )


def _limits(settings: PeerSettings, supervised: Supervised) -> LimitsNow:
    offer = supervised.lending.lasting
    return LimitsNow(
        cores=offer.cores,
        memory_mb=offer.memory_mb,
        disk_mb=offer.disk_mb,
        slots=offer.slots,
        hours=list(settings.hours),
        on_battery=settings.on_battery,
        others_cpu=settings.in_use.others_cpu,
        yield_to=list(settings.yield_to),
        in_use_run=settings.in_use.run,
        in_use_cores=settings.in_use.cores,
    )


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
