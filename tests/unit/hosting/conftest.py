"""A host on loopback with real sessions and a real disk; only the jobs' processes are the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from axonp2p.client.hosted.hosted_mark import HostedMark, write_mark
from axonp2p.client.hosted_run import copy_once
from axonp2p.client.storage.job_record import new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.errors import AxonError
from axonp2p.hosting.admission import HostLimits
from axonp2p.hosting.caller import HostLine
from axonp2p.hosting.host import Host, job_key
from axonp2p.hosting.hosted_folder import HostedFolder
from axonp2p.hosting.keeper import Keeper
from axonp2p.hosting.messages import HostJob
from axonp2p.hosting.process import EndAs, Program, RunOrders
from axonp2p.hosting.server import HostServer
from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import read_spec
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.relay.door import RelayDoor
from axonp2p.transport.sessions.listener import Listener
from tests.fakes import NOW, ManualClock, key_of

ADA, BOB, HOST = key_of("ada"), key_of("bob"), key_of("host")
JOB = "line-7f3a"


class Worked:
    """A process of the test's: it writes what a coordinator would write, and dies when it is told to."""

    def __init__(self, folder: HostedFolder, orders: RunOrders) -> None:
        self.folder = JobFolder(folder.job)
        self.orders = orders
        self.pid = 1
        self.said: list[str] = []
        self.over = asyncio.Event()
        if not (folder.job / "job.json").exists():
            spec = read_spec(folder.bundle)
            self.folder.write(new_record(orders.job, spec, spec.name, NOW))
        self.become(JobState.RUNNING)

    def become(self, state: JobState, **changes: object) -> None:
        self.folder.write(msgspec.structs.replace(self.folder.read(), state=state, **changes))

    async def wait(self) -> int:
        await self.over.wait()
        return 0

    def say(self, word: str) -> None:
        self.said.append(word)

    async def kill(self) -> None:
        self.over.set()


class Stage(Program):
    """What is run: `Worked` processes, all of which the test sees."""

    def __init__(self) -> None:
        self.processes: list[Worked] = []
        self.ended: list[tuple[str, str]] = []
        self.started = asyncio.Event()
        self.copied_from: list[Host] = []
        self.not_copied: list[AxonError] = []

    async def start(self, folder: HostedFolder, orders: RunOrders) -> Worked:
        self.processes.append(Worked(folder, orders))
        self.started.set()
        return self.processes[-1]

    async def end_as(self, folder: HostedFolder, orders: RunOrders, state: EndAs, why: str = "") -> bool:
        self.ended.append((state, why))
        job = JobFolder(folder.job)
        job.write(msgspec.structs.replace(job.read(), state=JobState(state)))
        return True

    async def copy(self, folder: HostedFolder, orders: RunOrders, host: Host) -> bool:
        self.copied_from.append(host)
        try:
            await copy_once(JobFolder(folder.job), folder.home, host, orders.most_bytes)
        except AxonError as error:
            self.not_copied.append(error)
            return False
        return True


@dataclass
class Hosting:
    """One host."""

    home: Path
    clock: ManualClock = field(default_factory=ManualClock)
    limits: HostLimits = field(default_factory=lambda: HostLimits(jobs=3, jobs_of_one=2, disk_bytes=2**20))
    stage: Stage = field(default_factory=Stage)
    own_key: PrivateKey = HOST

    async def start(self) -> None:
        self.keeper = Keeper(self.home / "hosted", self.limits, self.clock, self.stage)
        self.keeper.trackers = lambda: ["https://tracker"]
        app = web.Application()
        certificate = make_certificate(self.own_key, self.home / "certificate.pem")
        server = HostServer(self.own_key.peer_id, self.keeper)
        server.add_routes(app)
        self.listener = Listener(self.own_key, certificate, app)
        self.listener.serve_sessions(app, RelayDoor(None, "this host", server).serve)
        port = await self.listener.start("127.0.0.1", 0)
        self.place = Host(PinnedAddress("127.0.0.1", port, certificate.fingerprint), self.own_key.peer_id)
        await self.keeper.start()

    async def stop(self) -> None:
        await self.listener.stop()
        await self.keeper.stop()

    async def line(self, key: PrivateKey = ADA) -> HostLine:
        return await HostLine.open(key, self.place)

    async def give(self, bundle: Bundle, key: PrivateKey = ADA, job: str = JOB, copies: str = "") -> list[int]:
        """Hand a job over, or have a copy kept of what another host has; the sizes of the pieces that were sent."""
        sent: list[int] = []
        asked = HostJob(job=job, blob=bundle.blob.name, key=job_key(key, job).seed, copies=copies)
        async with await self.line(key) as line:
            await line.hand_over(asked, bundle.blob, bundle.piece, sent.append)
        return sent

    async def nobody_works(self) -> None:
        """Wait until no process works on any of Ada's jobs, and the host knows."""
        await asyncio.gather(*(one._task for one in self.keeper.of(ADA.peer_id) if one._task))

    async def process(self, number: int = 0) -> Worked:
        """The process that was started as that one."""
        while len(self.stage.processes) <= number:
            await asyncio.wait_for(self.stage.started.wait(), 10)
            self.stage.started.clear()
        return self.stage.processes[number]


@pytest.fixture
async def hosting(tmp_path: Path) -> AsyncIterator[Hosting]:
    home = tmp_path / "host"
    home.mkdir()
    running = Hosting(home)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return write_bundle(tmp_path / "job")


def write_bundle(folder: Path, data: bytes = b"1,2\n" * 150_000) -> Bundle:
    """Several pieces of it."""
    folder.mkdir()
    (folder / "task.py").write_text("class Task: pass\n")
    (folder / "data.csv").write_bytes(data)
    (folder / "job.toml").write_text('name = "line"\ndata = ["data.csv"]\n[train]\nrounds = 3\n')
    return collect(folder, read_spec(folder))


@pytest.fixture
def here(tmp_path: Path, hosting: Hosting) -> JobFolder:
    """The folder of a job that was handed over, on the computer that did so; nothing of its result is there yet."""
    folder = JobStore(tmp_path / "laptop").place_of(JOB)
    folder.path.mkdir(parents=True)
    write_mark(folder, HostedMark(tracker=str(hosting.place.address), host=HOST.peer_id))
    return folder
