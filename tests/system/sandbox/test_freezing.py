"""A worker stands still when its owner wants the machine, goes on afterwards, and can be ended meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from axonp2p.sandbox import child
from axonp2p.sandbox.child import SandboxedWorker
from axonp2p.sandbox.messages import Control
from axonp2p.sandbox.watch.worker_group import own_territory

BUSY_FAMILY = """
    import os, threading, time
    def spin():
        while True: pass
    threading.Thread(target=spin, daemon=True).start()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            spin()
        spin()
    answer("busy")
    while True:
        channel.receive()
        answer("still here")
"""


@pytest.fixture(params=["by its control group", "by signals"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Freezing in both ways, whatever this machine would choose."""
    if request.param == "by signals":
        monkeypatch.setattr(child, "own_territory", lambda: None)
    elif own_territory() is None:
        pytest.skip("no cgroup v2 here in which this user may make groups")


def ticks(worker: SandboxedWorker) -> dict[int, float]:
    """Processor time of each of its processes."""
    first = psutil.Process(worker.pid)
    return {process.pid: sum(process.cpu_times()[:2]) for process in (first, *first.children(recursive=True))}


async def grows(worker: SandboxedWorker) -> None:
    """Wait until it worked some more."""
    before = sum(ticks(worker).values())
    async with asyncio.timeout(30):
        while sum(ticks(worker).values()) <= before:  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.02)


@pytest.mark.usefixtures("held")
async def test_a_frozen_worker_uses_no_processor_and_goes_on_when_thawed(sandboxed: Any) -> None:
    async with asyncio.timeout(60), sandboxed.worker(BUSY_FAMILY) as worker:
        await worker.channel.receive()
        while len(ticks(worker)) < 4:  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.02)
        await grows(worker)
        assert not worker.frozen
        await worker.freeze()
        assert worker.frozen
        before = ticks(worker)
        await asyncio.sleep(0.5)
        assert ticks(worker) == before
        await worker.thaw()
        await grows(worker)
        await worker.channel.send(Control())
        _, payload = await worker.channel.receive()
        assert payload == b'"still here"'


@pytest.mark.usefixtures("held")
async def test_a_frozen_worker_can_be_ended(sandboxed: Any, alive: Callable[[int], bool]) -> None:
    async with asyncio.timeout(60), sandboxed.worker(BUSY_FAMILY) as worker:
        await worker.channel.receive()
        family = ticks(worker)
        await worker.freeze()
        end = await worker.kill()
        assert (end.reason, end.limit) == ("was ended by this peer", "")
        assert not any(map(alive, family))


@pytest.mark.usefixtures("held")
async def test_a_worker_that_ended_by_itself_is_frozen_thawed_and_held_without_harm(sandboxed: Any) -> None:
    async with asyncio.timeout(60), sandboxed.worker("pass") as worker:
        await worker.wait()
        await worker.freeze()
        await worker.thaw()
        worker.hold_to(1)
        assert not worker.frozen


async def test_who_is_woken_by_somebody_else_is_stopped_again(sandboxed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "own_territory", lambda: None)
    async with asyncio.timeout(60), sandboxed.worker(BUSY_FAMILY) as worker:
        await worker.channel.receive()
        await worker.freeze()
        for pid in ticks(worker):
            psutil.Process(pid).resume()
        while {psutil.Process(pid).status() for pid in ticks(worker)} != {psutil.STATUS_STOPPED}:  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.02)


def affinities(worker: Any) -> list[set[int]]:
    """Of all threads of its processes."""
    threads = [thread.id for pid in ticks(worker) for thread in psutil.Process(pid).threads()]
    return [os.sched_getaffinity(thread) for thread in threads]


async def test_its_threads_stay_on_the_processors_that_it_is_held_to(sandboxed: Any) -> None:
    async with asyncio.timeout(60), sandboxed.worker(BUSY_FAMILY) as worker:
        await worker.channel.receive()
        worker.hold_to(1)
        # Who is born in that moment is held from the next look on.
        while {len(held) for held in affinities(worker)} != {1}:  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.02)
        worker.hold_to(len(os.sched_getaffinity(0)))
        assert os.sched_getaffinity(worker.pid) == os.sched_getaffinity(0)
        worker.hold_to(0)
        assert len(os.sched_getaffinity(worker.pid)) in {1, len(os.sched_getaffinity(0))}


async def test_a_worker_runs_only_when_nobody_else_wants_to(sandboxed: Any) -> None:
    sandboxed.priority = "idle"
    async with asyncio.timeout(60), sandboxed.worker(BUSY_FAMILY) as worker:
        await worker.channel.receive()
        for pid in ticks(worker):
            assert os.sched_getscheduler(pid) == os.SCHED_IDLE
            assert psutil.Process(pid).nice() == 19
            assert psutil.Process(pid).ionice().ioclass == psutil.IOPRIO_CLASS_IDLE
        while worker.usage().tasks < 4 or not worker.usage().cpu_seconds:  # noqa: ASYNC110  no event tells
            await asyncio.sleep(0.02)
        assert worker.usage().memory_bytes > 2**20
