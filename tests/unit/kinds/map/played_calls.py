"""A job of this kind without a network: a real journal and a real results.sqlite, and workers that a test plays.

Workers outlive the client, as real ones do whose daemons wait. All runs on a loop whose time leaps, without threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import SIGNED_LIMIT, ReceiptBook, Settled
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import JobRecord, PeerRecord, new_record
from axonp2p.client.storage.job_store import JobFolder, JobStore
from axonp2p.client.storage.trust_book import TrustBook
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import NeedSpec
from axonp2p.kinds.map.call_forms import CallOutcome, pack_error, pack_outcomes
from axonp2p.kinds.map.driver import MapDriver
from axonp2p.kinds.map.messages import (
    AtWork,
    BeginChunk,
    CallResults,
    ChunkBegun,
    ChunkOver,
    EndChunk,
    FromWorkerMap,
    HeldChunk,
    KeepBlob,
    PrepareCalls,
    ReportCalls,
    ToWorkerMap,
)
from axonp2p.kinds.map.record import MapRecord
from axonp2p.kinds.map.results.results_store import ItemResult, ResultsStore
from axonp2p.kinds.map.section import MapJob, MapSection
from axonp2p.ledger.receipt import Receipt, Work, open_receipt
from axonp2p.values.packing import pack_value
from axonp2p.wire.codec import decode, decode_as
from axonp2p.wire.envelope import Signed
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame
from tests.fakes import key_of, make_row
from tests.laboratory.virtual_loop import VirtualLoop
from tests.unit.kinds.run.played_crew import DiskOfALoop, Killed, LeapingClock, reservation_of

JOB = "bag-1"
CALL_FLOPS = 10 * 10**9
"""One processor second of one of four cores that do 40 GFLOPS together."""


@dataclass
class PlayedChunk:
    """What a played worker has of a chunk."""

    order: BeginChunk
    said: int = 0
    begun: bool = False


class PlayedPeer:
    """A worker of one core that squares numbers, unless a test has it do something else."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = make_row(key_of(name), name=name)
        self.orders: list[ToWorkerMap] = []
        self.payloads: list[bytes] = []
        self.chunks: dict[int, PlayedChunk] = {}
        self.calls: list[int] = []
        """Items that were called here, to their end."""
        self.seconds: Callable[[int], float] = lambda item: 1.0
        self.outcome: Callable[[int], CallOutcome | str] = lambda item: CallOutcome(False, pack_value(item * item))
        """Of an item: what comes of it, or why the process crashes."""
        self.deaf: tuple[type, ...] = ()
        self.frozen = False
        self.mangle: Callable[[CallResults, bytes], tuple[CallResults, bytes]] = lambda said, data: (said, data)
        self.said: Callable[[FromWorkerMap, bytes], None] = lambda message, payload: None
        self._timer: asyncio.TimerHandle | None = None

    def obey(self, order: ToWorkerMap, payload: bytes) -> None:
        self.orders.append(order)
        self.payloads.append(payload)
        if self.frozen or isinstance(order, self.deaf):
            return
        match order:
            case PrepareCalls() | ReportCalls():
                held = [HeldChunk(n, c.order.items[c.said :], c.begun) for n, c in self.chunks.items()]
                self.said(AtWork(cores=1, chunks=held), b"")
            case BeginChunk():
                self.chunks[order.chunk] = PlayedChunk(order)
                self._go_on()
            case EndChunk() if order.chunk in self.chunks:
                if not self.chunks[order.chunk].begun:
                    self._over(order.chunk, "given back")
                elif not order.only_waiting:
                    self._over(order.chunk, "ended")
            case KeepBlob() | EndChunk():
                pass

    def freeze(self) -> None:
        self.frozen = True
        if self._timer:
            self._timer.cancel()

    def _over(self, number: int, why: Any, reason: str = "", seconds: float = 0.0) -> None:
        chunk = self.chunks.pop(number)
        self.said(ChunkOver(chunk=number, why=why, reason=reason, seconds=seconds), b"")
        if chunk.begun:
            if self._timer:
                self._timer.cancel()
            self._timer = None
        self._go_on()

    def _go_on(self) -> None:
        if self._timer is None and self.chunks and not self.frozen:
            number, chunk = next(iter(self.chunks.items()))
            chunk.begun = True
            self.said(ChunkBegun(chunk=number), b"")
            self._call(number, chunk)

    def _call(self, number: int, chunk: PlayedChunk) -> None:
        if chunk.said == len(chunk.order.items):
            self._timer = None
            self._over(number, "done", seconds=sum(map(self.seconds, chunk.order.items)))
            return
        item = chunk.order.items[chunk.said]
        self._timer = asyncio.get_running_loop().call_later(self.seconds(item), self._called, number, chunk, item)

    def _called(self, number: int, chunk: PlayedChunk, item: int) -> None:
        outcome = self.outcome(item)
        if isinstance(outcome, str):
            self._timer = None
            self._over(number, "crashed", outcome, 0.5)
            return
        self.calls.append(item)
        data = pack_outcomes([outcome])
        chunk.said += 1
        said = CallResults(
            chunk=number, first=item, calls=1, size=len(data), sha256=hashlib.sha256(data).digest(), cpu_seconds=1.0
        )
        self.said(*self.mangle(said, data))
        self._call(number, chunk)


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

    def heard(self, rank: int, message: FromWorkerMap, payload: bytes = b"") -> None:
        if self.listener and not self._life.dead and rank not in self.gone:
            frame = memoryview(pack_frame(message, payload))
            self._life.soon(self.listener.heard(rank, frame, signed=None))

    def lose(self, rank: int, reason: str = "it hung up", limit: str = "") -> None:
        """Its lease says that it has gone, and its worker with it."""
        self.gone.add(rank)
        self.leases[rank].limit = limit
        self.peers[rank].freeze()
        assert self.listener
        self._life.soon(self.listener.lost(rank, reason))

    def join(self, rank: int, peer: PlayedPeer) -> None:
        """As a replacement does."""
        self.add(rank, peer)
        lease = self.leases[rank]
        record = PeerRecord(name=peer.name, peer=lease.row.peer, rank=rank, reservation=lease.promise.uuid, rtt_s=0.0)
        self._life.journal.joined_late(record)
        assert self.listener
        self._life.soon(self.listener.joined(rank, peer.name))

    def work_for(self, listener: Any) -> None:
        self.listener = listener

    def tell(self, rank: int, frame: bytes) -> None:
        view = split_frame(memoryview(frame))
        order: ToWorkerMap = decode(view.header, ToWorkerMap, HEADER_LIMIT)
        if rank not in self.gone:
            asyncio.get_running_loop().call_soon(self.peers[rank].obey, order, bytes(view.payload))

    async def send(self, rank: int, frame: bytes) -> None:
        self.tell(rank, frame)

    def dismiss(self, rank: int, reason: str) -> None:
        self.dismissed.setdefault(rank, reason)
        self.peers[rank].freeze()

    async def keep_logs(self) -> None:
        return None


class Life:
    """One life of the client: dies at its step `dies_at`, if that comes."""

    def __init__(self, world: World, *, dies_at: int = -1, program: object = None) -> None:
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
            assert isinstance(record, MapRecord)
            self.step(f"job.json: {record.results} results, {sum(one.last for one in record.receipts)} numbered")
            write(record, lasting=lasting)

        folder.write = written  # type: ignore[method-assign]
        self.journal = JobJournal(folder, folder.read(), self.clock, self.told.append, DiskOfALoop())
        self.book = ReceiptBook(key_of("client"), JOB, self.journal.record.receipts)
        self.crew = PlayedCrew(self, world.peers)
        self.waits = False
        means: Any = SimpleNamespace(clock=self.clock, trust=world.trust)
        context = JobContext(
            means, self.journal, world.spec, self.clock.monotonic(), lambda crew: self.waits, self.replacing, program
        )
        self.driver = MapDriver(context, world.chance)

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
    def record(self) -> MapRecord:
        assert isinstance(self.journal.record, MapRecord)
        return self.journal.record

    def events(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]


@dataclass
class World:
    """A job's folder, its peers, and all lives of its client."""

    loop: VirtualLoop
    spec: MapJob
    folder: JobFolder
    peers: dict[int, PlayedPeer]
    asked: dict[tuple[str, int], Receipt] = field(default_factory=dict)
    """Receipts that peers were asked to sign."""
    chance: Callable[[], float] = lambda: 1.0
    """By which chunks are drawn; none is, unless a test has it otherwise."""

    @property
    def trust(self) -> TrustBook:
        return TrustBook(self.folder.path.parent / "trust.db")

    @classmethod
    def of(cls, loop: VirtualLoop, home: Path, *names: str, **section: Any) -> World:
        usual = {"items": 12, "fn": "task.py:square"}
        spec = MapJob(name="bag", kind="map", need=NeedSpec(peers=len(names)), map=MapSection(**(section or usual)))
        folder = JobStore(home).create(new_record(JOB, spec, str(home), 1.0))
        return cls(loop, spec, folder, {rank: PlayedPeer(name) for rank, name in enumerate(names)})

    def ask(self, data: bytes) -> None:
        signed: Signed[Receipt] = decode_as(data, Signed[Receipt], SIGNED_LIMIT)
        receipt = open_receipt(signed)
        place = (receipt.reservation, receipt.number)
        assert self.asked.setdefault(place, receipt) == receipt, "two receipts of one number"

    def life(self, *, dies_at: int = -1, program: object = None) -> Life:
        return Life(self, dies_at=dies_at, program=program)

    @property
    def paid(self) -> int:
        return sum(receipt.flops for receipt in self.asked.values())

    def results(self) -> dict[int, ItemResult]:
        store = ResultsStore(self.folder.path / "results.sqlite")
        try:
            return {one.item: one for one in store.read()}
        finally:
            store.close()


def watch_disk(life: Life, patch: Any) -> None:
    """Each transaction of a life is one of its steps, before and after."""
    keep = ResultsStore.keep

    def stepped(self: Any, results: Any, work: Any, opinions: Any = ()) -> None:
        life.step(f"results {[one.item for one in results]}")
        keep(self, results, work, opinions)
        life.step("written")

    patch.setattr(ResultsStore, "keep", stepped)


def raised(kind: str) -> CallOutcome:
    return CallOutcome(True, pack_error(kind, "no"))
