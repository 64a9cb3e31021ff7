"""A job of this kind without a network: a real journal on a real disk, and workers that a test plays.

Workers outlive the client, as real ones do whose daemons wait. All runs on a loop whose time leaps, without threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import SIGNED_LIMIT, ReceiptBook, Settled
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import JobRecord, PeerRecord, new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.jobs.spec import NeedSpec
from axonp2p.kinds.run import results
from axonp2p.kinds.run.driver import RunDriver
from axonp2p.kinds.run.messages import (
    BeginCopy,
    CopyExited,
    CopyStarted,
    EndCopy,
    FromWorkerRun,
    NoCopy,
    ReportCopy,
    SendOutputs,
    ToWorkerRun,
)
from axonp2p.kinds.run.record import RunRecord
from axonp2p.kinds.run.results import CopyResult, ResultsFile
from axonp2p.kinds.run.section import RunJob, RunSection
from axonp2p.ledger.receipt import Receipt, Work, open_receipt
from axonp2p.wire.codec import decode, decode_as
from axonp2p.wire.envelope import Signed
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.fakes import AtOnce, key_of, make_row
from tests.laboratory.swarms import EPOCH
from tests.laboratory.virtual_loop import VirtualLoop

JOB = "sweep-1"
COPY_FLOPS = 10 * 10**9
"""One processor second of one of four cores that do 40 GFLOPS together."""


class LeapingClock:
    """Unix time that goes with a loop's."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return EPOCH + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()


def reservation_of(rank: int) -> str:
    """Each peer has its own here."""
    return str(UUID(int=rank))


class Killed(BaseException):
    """The client's process is gone."""


class DiskOfALoop(AtOnce):
    """Without a thread."""

    async def finished(self) -> None:
        await asyncio.sleep(0)  # what is to be done once all is on the disk is done by then


class PlayedPeer:
    """A worker that does as it is told, unless a test has it do something else."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = make_row(key_of(name), name=name)
        self.orders: list[ToWorkerRun] = []
        self.copy: tuple[int, int] | None = None
        self.exited: CopyExited | None = None
        self.files = {"score.json": b"{}"}
        self.seconds = 1.0
        self.code: Callable[[BeginCopy], int] = lambda order: 0
        self.claims: dict[str, Any] = {}
        """What it says of a copy that ended, instead of the truth."""
        self.deaf: tuple[type, ...] = ()
        """Orders that it does nothing about."""
        self.instead: dict[type, Callable[[Any], None]] = {}
        """What it does about orders instead."""
        self.said: Callable[[FromWorkerRun, bytes], None] = lambda message, payload: None

    def say(self, message: FromWorkerRun, payload: bytes = b"") -> None:
        self.said(message, payload)

    def obey(self, order: ToWorkerRun) -> None:
        self.orders.append(order)
        if isinstance(order, self.deaf):
            return
        if act := self.instead.get(type(order)):
            act(order)
            return
        match order:
            case ReportCopy() if self.exited:
                self.say(self.exited)
            case ReportCopy():
                self.say(CopyStarted(index=self.copy[0], attempt=self.copy[1]) if self.copy else NoCopy())
            case BeginCopy():
                self.copy, self.exited = (order.index, order.attempt), None
                self.say(CopyStarted(index=order.index, attempt=order.attempt))
                asyncio.get_running_loop().call_later(self.seconds, self.end, *self.copy, self.code(order))
            case EndCopy():
                self.end(order.index, order.attempt, -9, "order")
            case SendOutputs():
                self.send(order)

    def end(self, index: int, attempt: int, code: int, why: Any = "itself") -> None:
        if self.copy == (index, attempt) and self.exited is None:
            usual: dict[str, Any] = {"ended": why, "code": code, "seconds": self.seconds, "cpu_seconds": 1.0}
            self.exited = CopyExited(index=index, attempt=attempt, **(usual | {"most_memory": 1} | self.claims))
            self.say(self.exited)

    def send(self, order: SendOutputs) -> None:
        for number, (path, content) in enumerate(self.files.items()):
            self.say(OutputPart(request=order.request, number=number, offset=0), content)
            sha256 = hashlib.sha256(content).digest()
            self.say(OutputFile(request=order.request, number=number, path=path, size=len(content), sha256=sha256))
        self.say(OutputsSent(request=order.request, files=len(self.files)))

    def begun(self) -> list[int]:
        """Which indices it was told to begin."""
        return [order.index for order in self.orders if isinstance(order, BeginCopy)]

    def asked_for(self) -> list[SendOutputs]:
        return [order for order in self.orders if isinstance(order, SendOutputs)]


class PlayedCrew:
    """Leases of one life of the client."""

    def __init__(self, life: Life, peers: dict[int, PlayedPeer]) -> None:
        self._life = life
        self.peers: dict[int, PlayedPeer] = {}
        self.leases: dict[int, Any] = {}
        self.dismissed: dict[int, str] = {}
        self.gone: set[int] = set()
        self.cut_off: dict[int, Any] = {}
        self.wire_bytes = 0
        self.listener: Any = None
        for rank, peer in peers.items():
            self.add(rank, peer)

    def add(self, rank: int, peer: PlayedPeer) -> None:
        self.peers[rank] = peer
        promise = SimpleNamespace(uuid=reservation_of(rank), tracker="")
        self.leases[rank] = SimpleNamespace(
            rank=rank, name=peer.name, row=peer.row, promise=promise, limit="", hung_up=False, gone=""
        )
        peer.said = lambda message, payload: self.heard(rank, message, payload)

    @property
    def present(self) -> dict[int, str]:
        return {rank: peer.name for rank, peer in self.peers.items() if rank not in {*self.dismissed, *self.gone}}

    def heard(self, rank: int, message: FromWorkerRun, payload: bytes = b"") -> None:
        if self.listener and not self._life.dead and rank not in self.gone:
            frame = memoryview(pack_frame(message, payload))
            self._life.soon(self.listener.heard(rank, frame, signed=None))

    def lose(self, rank: int, reason: str = "it hung up", limit: str = "") -> None:
        """Its lease says that it has gone."""
        self.gone.add(rank)
        self.leases[rank].limit = limit
        assert self.listener
        self._life.soon(self.listener.lost(rank, reason))

    def join(self, rank: int, peer: PlayedPeer) -> None:
        """As a replacement does, or one that was regained."""
        self.add(rank, peer)
        self.gone.discard(rank)
        self.dismissed.pop(rank, None)
        lease = self.leases[rank]
        record = PeerRecord(name=peer.name, peer=lease.row.peer, rank=rank, reservation=lease.promise.uuid, rtt_s=0.0)
        self._life.journal.joined_late(record)

    # --- what a driver may do ---

    def work_for(self, listener: Any) -> None:
        self.listener = listener
        for rank in self.gone:  # as leases do
            self._life.soon(listener.lost(rank, "it hung up"))

    def tell(self, rank: int, frame: bytes) -> None:
        order: ToWorkerRun = decode(split_frame(memoryview(frame)).header, ToWorkerRun, HEADER_LIMIT)
        if rank not in self.gone:
            asyncio.get_running_loop().call_soon(self.peers[rank].obey, order)

    def dismiss(self, rank: int, reason: str) -> None:
        self.dismissed.setdefault(rank, reason)

    async def keep_logs(self) -> None:
        return None


class Life:
    """One life of the client: dies at its step `dies_at`, if that comes."""

    def __init__(self, world: World, *, mute: bool = False, dies_at: int = -1) -> None:
        self.world, self.dies_at = world, dies_at
        self.dead = False
        self.steps = 0
        self.log: list[str] = []
        self.told: list[Event] = []
        self.clock = LeapingClock(world.loop)
        self._tasks: set[asyncio.Task[None]] = set()
        folder = JobFolder(world.folder.path)
        write = folder.write

        def written(record: JobRecord, *, lasting: bool = False) -> None:
            assert isinstance(record, RunRecord)
            numbers = sum(one.last for one in record.receipts)
            self.step(f"job.json: {record.results} results, {len(record.unpaid)} unpaid, {numbers} numbered")
            write(record, lasting=lasting)

        folder.write = written  # type: ignore[method-assign]
        self.journal = JobJournal(folder, folder.read(), self.clock, self.told.append, DiskOfALoop())
        if mute:
            self.journal.tell = lambda event: None  # type: ignore[method-assign]
        self.book = ReceiptBook(key_of("client"), JOB, self.journal.record.receipts)
        self.crew = PlayedCrew(self, world.peers)
        self.waits = False
        """Whether the job may wait for others."""
        means: Any = SimpleNamespace(clock=self.clock)
        context = JobContext(
            means, self.journal, world.spec, self.clock.monotonic(), lambda crew: self.waits, self.replacing
        )
        self.driver = RunDriver(context)

    def step(self, what: str) -> None:
        if self.dead or self.steps == self.dies_at:
            self.dead = True
            raise Killed
        self.steps += 1
        self.log.append(what)

    def soon(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextlib.asynccontextmanager
    async def replacing(self, crew: Any) -> AsyncIterator[None]:
        yield

    async def live(self) -> Event | None:
        """As `JobLife` does it."""
        self.driver.open(self.book)
        peers = [
            PeerRecord(name=peer.name, peer=peer.row.peer, rank=rank, reservation=reservation_of(rank), rtt_s=0.0)
            for rank, peer in self.crew.peers.items()
        ]
        self.journal.joined(peers, [], "")
        places = {(peer.reservation, peer.peer) for peer in peers}
        self.book.go_on_with(places)  # type: ignore[arg-type]
        for place in places:
            for receipt in self.book.open(*place):  # type: ignore[arg-type]
                self.world.ask(receipt)
        self.settlement = JobSettlement(self.journal, self.crew, self._office(), self._convictions())  # type: ignore[arg-type]
        return await self.drive()

    async def drive(self) -> Event | None:
        self.journal.change(lasting=True, lives=self.journal.record.lives + 1)
        for state in (JobState.FINDING, JobState.SENDING, JobState.RUNNING):
            self.journal.enter(state)
        last = await self.driver.run(self.settlement)
        await asyncio.sleep(0)  # what is to be done once all is on the disk
        return last

    def _office(self) -> Any:
        async def settle(seconds: float) -> Settled:
            return Settled(kept=self.book.unsigned, unsigned=0, not_taken=0, reason="")

        def write(works: Iterable[tuple[Any, Work]]) -> list[tuple[Any, bytes]]:
            given = list(works)
            self.log.append(f"numbered {sorted(lease.rank for lease, _ in given)}")
            return [(lease, self.book.write(lease.promise.uuid, lease.row.peer, work, 1.0)) for lease, work in given]

        def ask(receipts: list[tuple[Any, bytes]]) -> None:
            self.step(f"asked {sorted(lease.rank for lease, _ in receipts)}")
            for _, receipt in receipts:
                self.world.ask(receipt)

        return SimpleNamespace(book=self.book, settle=settle, write=write, ask=ask)

    def _convictions(self) -> Any:
        async def settle(seconds: float) -> None:
            return None

        return SimpleNamespace(settle=settle)

    @property
    def record(self) -> RunRecord:
        assert isinstance(self.journal.record, RunRecord)
        return self.journal.record

    def events(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]


class World:
    """A job's folder, its peers, and all lives of its client."""

    def __init__(self, loop: VirtualLoop, home: Path, *names: str, **section: Any) -> None:
        self.loop = loop
        section = {"command": "python sweep.py", "copies": 6, "outputs": ["*.json"]} | section
        self.spec = RunJob(name="sweep", kind="run", need=NeedSpec(peers=len(names)), run=RunSection(**section))
        self.folder = JobStore(home).create(new_record(JOB, self.spec, str(home), 1.0))
        self.peers = {rank: PlayedPeer(name) for rank, name in enumerate(names)}
        self.asked: dict[tuple[str, int], Receipt] = {}
        """Receipts that peers were asked to sign."""

    def ask(self, data: bytes) -> None:
        signed: Signed[Receipt] = decode_as(data, Signed[Receipt], SIGNED_LIMIT)
        receipt = open_receipt(signed)
        place = (receipt.reservation, receipt.number)
        assert self.asked.setdefault(place, receipt) == receipt, "two receipts of one number"

    def life(self, *, mute: bool = False, dies_at: int = -1) -> Life:
        return Life(self, mute=mute, dies_at=dies_at)

    @property
    def paid(self) -> int:
        return sum(receipt.flops for receipt in self.asked.values())

    @property
    def owed(self) -> int:
        """By what is on the disk: nobody signs here, so all receipts are open."""
        record = self.folder.read()
        assert isinstance(record, RunRecord)
        book = ReceiptBook(key_of("client"), JOB, record.receipts)
        found = [open_receipt(signed).flops for signed in book._open.values()]
        return sum(found) + sum(one.flops for one in record.unpaid.values())

    def lines(self) -> dict[int, CopyResult]:
        """results.csv, which must have each index once."""
        file = ResultsFile(self.folder.path / "results.csv", self.spec.run.copies)
        found, whole, _ = file._read()
        assert whole, "a line twice, or damage"
        return found


def watch_disk(life: Life, patch: Any) -> None:
    """Each thing that a life writes is one of its steps."""
    for kind, name in ((results.ResultsFile, "add"), (results.ArrivingOutputs, "put")):
        before = getattr(kind, name)

        def stepped(self: Any, *args: Any, before: Any = before, name: str = name) -> Any:
            life.step(f"{'line of' if name == 'add' else 'files of'} {args[0].index if args else self._place.name}")
            return before(self, *args)

        patch.setattr(kind, name, stepped)
