"""The cards that are lent are looked at; what that means for their leases."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from axonp2p.sandbox.gpu_access import GpuAccess
from peer_daemon.gpus.seen_gpus import GpuLook, GpuProcess, Looks
from peer_daemon.idle.idle_settings import IdleSettings
from peer_daemon.lending.lent_gpus import GpuAssignment, LentGpu
from peer_daemon.owner.gpu_watch import BACK_WITHIN_S, GpuWatch
from tests.fakes import ManualClock

CARD = LentGpu("a card", "8.6", "580.1", GpuAccess("GPU-1", (), (), 8000))
OURS = GpuProcess(os.getpid(), "python3", 3000, computes=True)
TOO_MUCH = GpuProcess(os.getpid(), "python3", 9000, computes=True)
STRANGER = GpuProcess(1, "blender", 500, computes=True)


USUAL = IdleSettings()


class Runner:
    """A lease that has the card; its worker is this process."""

    def __init__(self) -> None:
        self.lease = SimpleNamespace(gpu=CARD.access)
        self.worker_pid = os.getpid()
        self.said: list[tuple[Any, ...]] = []

    def end_over(self, limit: str, reason: str) -> None:
        self.said.append((limit, reason))

    def hand_back(self, reason: str, seconds: float, *, noted: str = "") -> None:
        self.said.append((reason, seconds))


class PlayedDriver:
    """What every look finds, and how often the driver was opened."""

    def __init__(self) -> None:
        self.processes: tuple[GpuProcess, ...] = ()
        self.opened: list[frozenset[str]] = []
        self.power: list[tuple[str, int]] = []

    def open(self, uuids: Iterable[str]) -> PlayedDriver:
        self.opened.append(frozenset(uuids))
        return self

    def look(self) -> Looks:
        return {uuid: GpuLook(uuid, 50, self.processes) for uuid in self.opened[-1]}

    def hold_power(self, uuid: str, percent: int) -> str:
        self.power.append((uuid, percent))
        return "Insufficient Permissions" if percent == 50 else ""

    def free_power(self, uuid: str) -> None:
        self.power.append((uuid, 0))

    def close(self) -> None:
        pass


def watch_over(driver: PlayedDriver, gpus: GpuAssignment, *runners: Runner) -> GpuWatch:
    running: Any = SimpleNamespace(runners=list(runners))
    return GpuWatch(gpus, running, ManualClock(), driver.open)


async def test_a_worker_that_uses_too_much_of_its_card_ends_by_name() -> None:
    driver, runner = PlayedDriver(), Runner()
    watch = watch_over(driver, GpuAssignment([CARD]), runner)
    driver.processes = (OURS,)
    assert not await watch.look(USUAL)
    assert runner.said == []
    driver.processes = (TOO_MUCH,)
    await watch.look(USUAL)
    assert runner.said == [("gpu-memory", "used 9000 MiB of the GPU's memory where 8000 MiB are allowed")]


async def test_a_card_that_its_owner_uses_goes_back_at_once_and_others_hear_of_it() -> None:
    driver, runner, gpus = PlayedDriver(), Runner(), GpuAssignment([CARD])
    watch = watch_over(driver, gpus, runner)
    driver.processes = (OURS, STRANGER)
    assert await watch.look(USUAL)
    assert runner.said == [("another program computes on the GPU: blender", BACK_WITHIN_S)]
    assert gpus.told(())[0].taken is True
    assert not await watch.look(USUAL)


async def test_where_no_card_is_lent_the_driver_is_left_alone() -> None:
    driver = PlayedDriver()
    watch = watch_over(driver, GpuAssignment())
    assert not await watch.look(USUAL)
    assert driver.opened == []


async def test_a_lease_is_looked_at_though_its_owner_lends_no_card_any_more() -> None:
    driver, runner, gpus = PlayedDriver(), Runner(), GpuAssignment([CARD])
    watch = watch_over(driver, gpus, runner)
    await watch.look(USUAL)
    gpus.gpus = ()
    driver.processes = (TOO_MUCH,)
    await watch.look(USUAL)
    assert [said[0] for said in runner.said] == ["gpu-memory"]
    assert driver.opened == [frozenset({"GPU-1"})]


async def test_a_card_draws_less_while_a_job_has_it_and_then_as_before() -> None:
    driver, runner = PlayedDriver(), Runner()
    runners = [runner]
    running: Any = SimpleNamespace(runners=runners)
    watch = GpuWatch(GpuAssignment([CARD]), running, ManualClock(), driver.open)
    for percent in (0, 70, 70, 60):
        await watch.look(IdleSettings(gpu_power_percent=percent))
    assert driver.power == [("GPU-1", 70), ("GPU-1", 0), ("GPU-1", 60)]
    runners.clear()
    await watch.look(IdleSettings(gpu_power_percent=60))
    await watch.look(IdleSettings(gpu_power_percent=60))
    assert driver.power[3:] == [("GPU-1", 0)]


async def test_a_driver_that_lets_only_root_limit_power_is_asked_once_a_lease() -> None:
    driver = PlayedDriver()
    watch = watch_over(driver, GpuAssignment([CARD]), Runner())
    for _ in range(3):
        await watch.look(IdleSettings(gpu_power_percent=50))
    assert driver.power == [("GPU-1", 50)]
