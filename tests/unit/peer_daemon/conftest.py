"""A peer's door with everything real but the sandbox: its worker is played by the test."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from axonp2p.identity.certificate import make_certificate
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.messages import Member, TakeLease
from axonp2p.peers.capability import Capability
from axonp2p.reservation.token import Token
from axonp2p.sandbox.channel import WorkerChannel
from axonp2p.sandbox.child import Usage, WorkerEnd
from axonp2p.sandbox.inside import Inside
from axonp2p.sandbox.log import BoundedLog
from axonp2p.sandbox.messages import MayTell
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.lanes.opening import BulkLanes
from axonp2p.transport.sessions.dialer import dial
from axonp2p.transport.sessions.listener import Listener
from axonp2p.transport.sessions.session import Session
from axonp2p.transport.ways import BareWhereabouts
from axonp2p.wire.envelope import encode_signed
from axonp2p.wire.schema import SCHEMAS
from peer_daemon.bundles.kept_bundles import KeptBundles
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.execution.lease_context import LeaseContext
from peer_daemon.execution.running_leases import RunningLeases
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.lending import Lending
from peer_daemon.links.in_turn import InTurn
from peer_daemon.links.line_watch import LineWatch
from peer_daemon.links.turns import SendPace
from peer_daemon.session_router import SessionRouter
from peer_daemon.wheels.wheel_cache import WheelCache
from peer_daemon.wheels.wheel_policy import WheelPolicy
from tests.fakes import make_row

TRACKER = PrivateKey(b"t" * 32)
CLIENT = PrivateKey(b"c" * 32)
RESERVATION = "00000000-0000-4000-8000-000000000001"
OFFER = Capability(
    cores=2, memory_mb=1024, disk_mb=512, gflops=1, slots=1, free=1, python="3.11", packages={}, kinds=["train"]
)


@pytest.fixture
def only_train(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build knows one kind of job."""
    for name in reversed([name for name in KINDS if name != "train"]):  # taken back in the order in which they were
        monkeypatch.delitem(KINDS, name)


class ShiftedClock:
    """The machine's clock, set forward or back."""

    def __init__(self):
        self.ahead = 0.0

    def now(self):
        return time.time() + self.ahead

    def monotonic(self):
        return time.monotonic()


class PlayedWorker:
    """The inside end is the test's; it ends when it is killed or when the test says so."""

    def __init__(self, channel: WorkerChannel, inside: Inside, folder: Path):
        self.channel = channel
        self.inside = inside
        self.folder = folder
        self.program = ""
        self.written = BoundedLog(1024 * 1024)
        self.started = time.monotonic()
        self.killed = False
        self.frozen = False
        self.held_to = 0
        self.credit: Counter[int | None] = Counter()
        self._taking: asyncio.Task | None = None
        self.pid = os.getpid()
        self._ended: asyncio.Future[WorkerEnd] = asyncio.get_running_loop().create_future()

    async def say(self, message, payload=b""):
        await asyncio.to_thread(self.inside.send, message, payload)

    async def hear(self):
        """The next message but those about credit, which are counted."""
        while True:
            message, payload = await self.take()
            if not isinstance(message, MayTell):
                return message, payload

    async def take(self):
        """The next message. May be cancelled without losing it."""
        if self._taking is None:
            self._taking = asyncio.create_task(asyncio.to_thread(self.inside.receive))
        message, payload = await asyncio.shield(self._taking)
        self._taking = None
        if isinstance(message, MayTell):
            self.credit[message.rank] += message.bytes
        return message, payload

    def end(self, reason: str, limit: str = ""):
        self.inside.close()
        self._ended.set_result(WorkerEnd(reason, limit, "last words"))

    async def wait(self):
        return await asyncio.shield(self._ended)

    async def kill(self):
        self.killed = True
        self.channel.close()
        if not self._ended.done():
            self.end("was ended by this peer")
        return await self.wait()

    async def freeze(self):
        self.frozen = True

    async def thaw(self):
        self.frozen = False

    def hold_to(self, cores):
        self.held_to = cores

    def end_over(self, limit, reason):
        self.end(reason, limit)

    def usage(self):
        return Usage(0, 0.0, 0)

    def log(self, start=0):
        return b"x" * 300_000

    def log_since(self, start, most):
        return self.written.since(start, most)


class OnePeer:
    """A door that listens on a free port of this machine."""

    def __init__(self, key: PrivateKey, folder: Path, upload_limit: float = 0, kinds: Sequence[str] = ("train",)):
        self.key = key
        self.folder = folder
        self.upload_limit = upload_limit
        self.offer = msgspec.structs.replace(OFFER, kinds=list(kinds))
        self.clock = ShiftedClock()
        self.workers: asyncio.Queue[PlayedWorker] = asyncio.Queue()
        self.told_free: list[int] = []
        self.noted: list[tuple[str, str]] = []
        self.trackers_know = asyncio.Event()
        """Tests clear it to play trackers that are slow."""
        self.trackers_know.set()
        self._told = asyncio.Condition()

    async def __aenter__(self):
        self.folder.mkdir()
        (self.folder / "jobs").mkdir()
        self.leases = Leases(self.key.peer_id, Lending(self.offer), check_address=True)
        self.leases.trust(TRACKER.peer_id)
        self.book = ReceiptsBook(self.folder / "receipts.db", self.key, self.clock)
        certificate = self.certificate = make_certificate(self.key, self.folder / "certificate.pem")
        place = LeaseContext(
            self.key,
            self.clock,
            self.row,
            DialPolicy(lambda: ["127.0.0.1"], tells_why=False),
            self.folder / "jobs",
            self.book,
            upload=InTurn(self.upload_limit),
            download=SendPace(0),
            line=LineWatch(0, 0),
            lanes=BulkLanes(certificate),
            kept=KeptBundles(self.folder / "jobs"),
            wheels=WheelCache(self.folder / "wheels", WheelPolicy("any"), 2**31),
            start_worker=self._start_worker,
        )
        self.running_leases = RunningLeases()
        self.door = SessionRouter(self.leases, place, self.running_leases, self.clock, self._slots_changed, self._noted)
        app = web.Application()
        self.listener = Listener(self.key, self.certificate, app)
        self.listener.serve_sessions(app, self.door.serve)
        self.listener.take_lanes(place.lanes)
        await self.listener.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        await self.door.close("the test is over")
        await self.listener.stop()
        self.book.close()

    @property
    def address(self):
        return f"127.0.0.1:{self.listener.port}"

    def member(self, rank: int, reservation: str = RESERVATION) -> Member:
        return Member(rank=rank, reservation=reservation, row=self.row(f"peer-{rank}"))

    def row(self, name: str = "peer") -> bytes:
        addresses, certificate = [self.address], self.certificate.fingerprint
        row = make_row(self.key, now=time.time(), name=name, addresses=addresses, certificate=certificate)
        return encode_signed(self.key, row)

    async def dial(self, key: PrivateKey = CLIENT) -> Session:
        where = BareWhereabouts(self.key.peer_id, [self.address], self.certificate.fingerprint)
        return await dial(key, where, called="the peer")

    async def has_told(self, free: int):
        """Wait until that many slots are free."""
        async with asyncio.timeout(10), self._told:
            await self._told.wait_for(lambda: self.told_free and self.told_free[-1] == free)

    async def _noted(self, kind, sentence, job):
        self.noted.append((kind, sentence))

    async def _slots_changed(self):
        self.told_free.append(self.leases.free(time.time()))
        async with self._told:
            self._told.notify_all()
        return self.trackers_know

    async def _start_worker(self, folder, limits, *, program, data, blobs):
        ours, theirs = socket.socketpair()
        worker = PlayedWorker(WorkerChannel(ours), Inside(theirs.detach()), folder)
        worker.program, worker.blobs = program, blobs
        await self.workers.put(worker)
        return worker


def take_lease(
    *peers: OnePeer,
    reservation: str = RESERVATION,
    seconds: int = 60,
    datasets=(),
    kind: str = "train",
    grace: int = 0,
) -> TakeLease:
    now = int(time.time())
    token = Token(
        uuid=reservation,
        issuer=TRACKER.peer_id,
        client=CLIENT.peer_id,
        client_address="127.0.0.1",
        peers=[peer.key.peer_id for peer in peers],
        kinds=[kind],
        not_before=now,
        expires=now + seconds,
    )
    shown = encode_signed(TRACKER, token)
    return TakeLease(
        schema=SCHEMAS.get(kind, ""),
        token=shown,
        job="digits",
        kind=kind,
        cores=1,
        memory_mb=256,
        datasets=list(datasets),
        grace=grace,
    )


@pytest.fixture
async def make_peer(tmp_path):
    async with AsyncExitStack() as peers:
        count = 0

        async def make(**settings: Any) -> OnePeer:
            nonlocal count
            count += 1
            peer = OnePeer(PrivateKey(bytes([count]) * 32), tmp_path / f"peer-{count}", **settings)
            return await peers.enter_async_context(peer)

        make.take_lease = take_lease
        yield make
