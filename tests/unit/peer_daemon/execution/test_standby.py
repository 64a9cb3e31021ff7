"""A worker that stands by: taken by a lease that is like the last one, dropped when the owner wants the machine."""

from __future__ import annotations

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from axonp2p.errors import SandboxMissing
from axonp2p.sandbox.child import Usage, WorkerEnd
from axonp2p.sandbox.limits import Limits
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.execution.standby import RETRY_S, SETTLES_S, StandbyWorkers
from tests.fakes import ManualClock

USUAL = Limits(cores=1, memory_mb=1024, scratch_mb=256)


class Played:
    """A worker that notes what is done with it."""

    def __init__(self, folder: Path, blobs: Path, limits: Limits, pid: int):
        self.folder, self.limits, self.pid = folder.parent, limits, pid
        self.inodes = [shown.stat().st_ino for shown in (folder, blobs)]
        self.stood_by, self.killed, self.fails = False, False, False
        self.whole = asyncio.Event()
        self.whole.set()
        self.memory_mb = 0
        self._end = asyncio.get_running_loop().create_future()

    async def stand_by(self):
        await self.whole.wait()
        self.stood_by = True

    def bind(self, memory_mb):
        if self.fails:
            raise OSError("no such group")
        self.memory_mb = memory_mb

    def usage(self):
        return Usage(150 * 2**20, 1.5, 2)

    def dies(self):
        self._end.set_result(WorkerEnd("ended with exit code 1", "", ""))

    async def wait(self):
        return await asyncio.shield(self._end)

    async def kill(self):
        self.killed = True
        if not self._end.done():
            self._end.set_result(WorkerEnd("was ended", "", ""))
        return await self.wait()


class World:
    """A daemon's folder of jobs, and all workers that were started."""

    def __init__(self, jobs: Path):
        self.jobs, self.clock, self.started, self.broken = jobs, ManualClock(), list[Played](), False
        self.slow = False
        # One thread: `settles` waits for all that was begun in it before.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        self.workers = StandbyWorkers(jobs, "trains", USUAL, self.clock, self._start)

    async def _start(self, job_folder, limits, *, program, data, blobs):
        if self.broken:
            raise SandboxMissing("the sandbox did not start")
        self.started.append(Played(job_folder, blobs, limits, 100 + len(self.started)))
        if self.slow:
            self.started[-1].whole.clear()
        return self.started[-1]

    async def follows(self, room: bool, *, free: int = 1):
        self.workers.follow(room=room, free_slots=free)
        await self.settles()

    async def passes(self, seconds: float, *, free: int):
        """The daemon looks at its slots twice a second, and at the end."""
        until = self.clock.time + seconds
        while self.clock.time < until:
            await self.follows(True, free=free)
            self.clock.time = min(self.clock.time + 0.5, until)
        await self.follows(True, free=free)

    async def settles(self):
        for _ in range(20):
            await asyncio.sleep(0)
            await asyncio.to_thread(int)

    async def lease(self, limits=USUAL, *, program="trains", data=None, name="lease"):
        bundle, blobs = (self.jobs / name / shown for shown in ("bundle", "blobs"))
        bundle.mkdir(parents=True)
        blobs.mkdir()
        return await self.workers(bundle, limits, program=program, data=data or {}, blobs=blobs)


@pytest.fixture
async def world(tmp_path):
    @asynccontextmanager
    async def running():
        world = World(tmp_path)
        task = asyncio.create_task(world.workers.run())
        yield world
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async with running() as world:
        yield world


async def test_a_lease_with_other_memory_takes_it_with_its_folders(world):
    await world.follows(True)
    (standing,) = world.started
    assert standing.stood_by
    assert world.workers.pids == [100]
    worker = await world.lease(dataclasses.replace(USUAL, memory_mb=4096))
    assert worker is standing
    assert (standing.memory_mb, world.workers.pids, standing.killed) == (4096, [], False)
    taken = [world.jobs / "lease" / shown for shown in ("bundle", "blobs")]
    assert [shown.stat().st_ino for shown in taken] == standing.inodes
    assert [path.name for path in world.jobs.iterdir()] == ["lease"]


async def test_a_lease_renames_no_folder_that_a_sandbox_is_still_to_show(world):
    world.slow = True
    await world.follows(True)
    (standing,) = world.started
    world.slow = False
    assert await world.lease() is not standing
    assert all(shown.is_dir() for shown in (standing.folder / "bundle", standing.folder / "blobs"))
    await world.follows(True)
    standing.whole.set()
    await world.settles()
    assert await world.lease(name="second") is standing


async def test_the_next_one_is_like_the_last_lease(world):
    two = dataclasses.replace(USUAL, cores=2)
    first = await world.lease(two)
    await world.follows(True)
    assert world.started[-1].limits == two
    assert first is not await world.lease(two, name="second")
    assert len(world.started) == 2


async def test_a_lease_with_little_memory_does_not_starve_the_next_one(world):
    await world.lease(dataclasses.replace(USUAL, memory_mb=64))
    await world.follows(True)
    assert world.started[-1].limits == USUAL


@pytest.mark.parametrize(
    "limits",
    [
        dataclasses.replace(USUAL, cores=2),
        dataclasses.replace(USUAL, scratch_mb=16),
        dataclasses.replace(USUAL, executes=True),
    ],
)
async def test_a_lease_with_other_limits_starts_its_own_and_the_memory_is_its(world, limits):
    await world.follows(True)
    (standing,) = world.started
    assert await world.lease(limits) is not standing
    await world.settles()
    assert standing.killed
    assert not standing.folder.exists()


OTHER_WORK = [("runs", {}), ("trains", {"mnist": Path("/data/mnist")})]


@pytest.mark.parametrize(("program", "data"), OTHER_WORK)
async def test_short_leases_of_other_work_neither_take_it_nor_cost_it(world, program, data):
    await world.follows(True)
    (standing,) = world.started
    for name in ("first", "second", "third"):
        assert await world.lease(program=program, data=data, name=name) is not standing
        await world.passes(SETTLES_S - 1, free=0)
        await world.passes(1, free=1)
    assert not standing.killed
    assert await world.lease() is standing


@pytest.mark.parametrize(("program", "data"), OTHER_WORK)
async def test_a_long_lease_of_other_work_has_its_memory_and_after_it_none_loads_at_once(world, program, data):
    await world.follows(True)
    (standing,) = world.started
    await world.lease(program=program, data=data)
    await world.passes(SETTLES_S, free=0)
    assert standing.killed
    count = len(world.started)
    await world.passes(SETTLES_S - 1, free=1)  # the next job may be like this one, and would have to wait meanwhile
    assert len(world.started) == count
    await world.passes(1, free=1)
    assert len(world.started) == count + 1


async def test_without_room_it_goes_at_once_whatever_work_there_is(world):
    await world.follows(True)
    await world.lease(program="runs")
    await world.follows(True, free=0)
    assert not world.started[0].killed
    await world.follows(False, free=0)
    assert world.started[0].killed


async def test_after_a_lease_of_its_own_work_the_next_one_loads_at_once(world):
    await world.follows(True)
    await world.lease()
    await world.passes(SETTLES_S, free=0)
    assert len(world.started) == 1
    await world.follows(True)
    assert len(world.started) == 2


async def test_it_goes_when_the_machine_is_wanted_and_comes_again(world):
    await world.follows(True)
    await world.follows(False)
    assert world.started[0].killed
    assert list(world.jobs.iterdir()) == []
    await world.follows(True)
    await world.follows(True)
    assert len(world.started) == 2


async def test_one_that_died_is_not_given_to_a_lease_nor_started_again_at_once(world):
    await world.follows(True)
    world.started[0].dies()
    await world.settles()
    assert await world.lease() is world.started[1]
    await world.follows(True)
    await world.follows(True)
    assert len(world.started) == 2
    world.clock.time += RETRY_S
    await world.follows(True)
    assert len(world.started) == 3


async def test_where_none_can_be_started_leases_still_try(world):
    world.broken = True
    await world.follows(True)
    assert list(world.jobs.iterdir()) == []
    world.broken = False
    await world.follows(True)
    assert world.started == []
    assert await world.lease() is world.started[0]


async def test_one_that_cannot_be_bound_is_ended_and_the_lease_has_its_own(world):
    await world.follows(True)
    world.started[0].fails = True
    worker = await world.lease()
    assert worker is world.started[1]
    assert world.started[0].killed


async def test_what_it_uses_is_the_daemons_and_stays_counted(world):
    leases = RunningLeases(world.workers)
    assert leases.used().cpu_seconds == 0
    await world.follows(True)
    assert (leases.used().cpu_seconds, leases.used().memory_mb) == (1.5, 150)
    assert 100 in leases.pids()
    await world.follows(False)
    assert (leases.used().cpu_seconds, leases.used().memory_mb) == (1.5, 0)


async def test_a_daemon_that_stops_leaves_none(tmp_path):
    world = World(tmp_path)
    task = asyncio.create_task(world.workers.run())
    await world.follows(True)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.started[0].killed
