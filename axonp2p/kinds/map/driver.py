"""The driver of a bag of calls: carries out what `queue.ChunkQueue` decides.

One task alone moves the queue on, by one fact after the other. Results are checked where they arrive, before the next
word of that peer is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.fact_inbox import Fact, OwnerSaid, PeerCame, PeerGone, WorkerSaid
from axonp2p.client.run.peers_at_work import REPORT_S, PeersAtWork
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.errors import AxonError, PeerMisbehaved
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import HandBack, WorkerPaused, WorkerResumed
from axonp2p.kinds.map.call_pay import PAY_EVERY_S, CallPay, place_of
from axonp2p.kinds.map.calls.calls_store import BLOBS, CallsStore
from axonp2p.kinds.map.calls.live_calls import LiveCalls
from axonp2p.kinds.map.chunk_sending import ChunkSending
from axonp2p.kinds.map.events import ChunkCopied, ChunkCrashed, PeerSetAside
from axonp2p.kinds.map.kept_end import RESULTS, finished_event, open_results
from axonp2p.kinds.map.merge_calls import MergeCalls
from axonp2p.kinds.map.messages import AtWork, BlobsLacking, ChunkBegun, ChunkOver, EndChunk, ReportCalls
from axonp2p.kinds.map.opinions.result_acceptance import PLAIN, ResultAcceptance
from axonp2p.kinds.map.opinions.second_opinions import SecondOpinions
from axonp2p.kinds.map.peer_silence import PeerSilence
from axonp2p.kinds.map.queue import ChunkQueue
from axonp2p.kinds.map.queue_actions import Distrust, QueueAction, QueuePlan, SetAside, StartChunk, StopChunk
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.kinds.map.results.arriving_results import ArrivedResults, ArrivingWords, MapWord
from axonp2p.kinds.map.results.result_keeping import ResultKeeping
from axonp2p.kinds.map.results.results_store import ItemResult, ResultsStore
from axonp2p.kinds.map.section import MapJob, preparation_of
from axonp2p.wire.frame import Frame

MOST_WAITING = 2048
"""Words of one peer that wait for this driver: one that says more breaks the protocol."""


class MapDriver:
    """`client.run.driver.Driver`."""

    def __init__(self, context: JobContext, chance: Callable[[], float] | None = None) -> None:
        """By `chance` it is drawn what is made twice; it is the system's own otherwise."""
        assert isinstance(context.spec, MapJob)
        self._context = context
        self._need, self._section = context.spec.need, context.spec.map
        self._journal = context.journal
        self._clock = context.means.clock
        self._live = context.program if isinstance(context.program, LiveCalls) else None
        self._queue = ChunkQueue(QueuePlan(0))
        self._calls: CallsStore | None = None
        self._pay = CallPay(self._journal)
        self._peers: PeersAtWork[MapWord] = PeersAtWork(context, self._opened, MOST_WAITING)
        self._arriving = ArrivingWords(self._section.most_result)
        store = ResultsStore(self._journal.folder.path / RESULTS)
        keeping = ResultKeeping(self._journal, store, self._pay, self._live, self._peers.wake)
        draw, trust = chance or random.SystemRandom().random, context.means.trust
        self._opinions = SecondOpinions(self._section, self._journal, store, trust, draw, keeping.finished)
        self._acceptance = ResultAcceptance(self._journal, store, self._opinions, keeping, self._need.cores)
        self._store, self._keeping = store, keeping
        self._silence = PeerSilence()
        self._tree: ReduceTree | None = None
        self._copied = 0
        self._served: set[str] = set()
        """Places that may have chunks: an earlier life had a lease there, or this one heard of it before."""

    # --- `Driver` ---

    def open(self, book: ReceiptBook) -> None:
        """`Driver`."""
        found = open_results(self._journal, self._store, self._pay, book, self._clock.now())
        record, section = self._journal.record, self._section
        self._served = {f"{peer.reservation}/{peer.peer}" for peer in record.peers}
        self._opinions.open()
        tree, outvoted = self._store.tree(), self._store.outvoted()
        self._store.close()
        blobs, written = self._journal.folder.path / BLOBS, self._keeping.finished
        merges = MergeCalls(tree, self._store, written, blobs) if tree else None
        weigh = merges.weigh if merges else lambda item: 0
        if section.calls:
            self._calls = CallsStore(self._journal.folder.path)
            weigh = (self._live.sizes if self._live else self._calls.sizes()).__getitem__
            self._calls.close()
        plan = QueuePlan(
            items=record.units,
            finished=found,
            retries=section.retries,
            chunk=section.chunk,
            first_chunk=(record.lives + 1) << 24,
            weigh=weigh,
            group=self._live.groups.__getitem__ if self._live else tree.merges if tree else lambda item: 0,
            closed=self._live is None,
            quorum=self._quorum_of,
            error_quorum=self._error_quorum_of if tree else lambda rank: 1,
            opinions=self._opinions.for_queue(),
            outvoted=outvoted,
            tree=tree,
        )
        self._queue, self._tree = ChunkQueue(plan), tree
        self._sending = ChunkSending(blobs, self._peers.not_brought, self._calls, self._live, merges)

    def pause(self) -> None:
        """`Driver`."""
        self._peers.pause()

    def stop(self) -> None:
        """`Driver`."""
        self._peers.stop()

    def leave(self) -> None:
        """`Driver`."""
        self._peers.leave()

    async def run(self, settlement: JobSettlement) -> Event | None:
        """`Driver`."""
        self._settlement = settlement
        self._pay.due = self._clock.monotonic() + PAY_EVERY_S
        self._keeping.begin()
        try:
            return await self._end() if await self._work() else None
        except (AxonError, asyncio.CancelledError) as error:
            # Work that was accepted is paid all the same, as far as the disk takes it.
            with contextlib.suppress(AxonError, OSError):
                await self._close()
                await settlement.settle_after(error)
            raise

    async def _work(self) -> bool:
        """Until it is over; false: too few peers are left, and others are waited for."""
        crew = self._settlement.crew
        # In the first life no peer has calls of an earlier one.
        self._peers.work_for_us(crew, REPORT_S if self._journal.record.lives > 1 else 0.0)
        if self._live:
            self._live.attach(self._peers.waker())
        async with self._context.replacing(crew):
            while not self._over:
                if self._peers.too_few(0 if self._queue.over_all else 1):
                    return False
                if self._peers.may_begin():
                    await self._carry_out(self._queue.begin(self._clock.monotonic()))
                self._look_for_voices()
                if self._tree:
                    self._acceptance.look_for_failures(self._tree.calls, self._section.fn)
                await self._hear()
        return True

    def _look_for_voices(self) -> None:
        stuck = self._peers.begun and self._peers.there <= self._peers.reported and self._queue.lacks_voices
        stuck = stuck and self._peers.idle and self._keeping.idle
        awaited, there = self._queue.opinions_awaited if stuck else 0, map(self._peers.name, self._peers.there)
        self._opinions.look_for_voices(awaited, there, self._clock.monotonic(), self._need.wait)

    # --- what is heard ---

    async def _opened(self, rank: int, frame: Frame) -> MapWord | None:
        """`fact_inbox.OpenWord`."""
        self._silence.heard(rank, self._clock.monotonic())
        await self._keeping.room()
        return await self._arriving.opened(rank, frame)

    async def _hear(self) -> None:
        """Wait for the next fact, or for the time at which something is due, and do what follows."""
        silence = self._silence.next_deadline(self._expected)
        fact = await self._peers.next([self._pay.due, self._queue.next_deadline(), silence, self._opinions.fails_at])
        await self._carry_out(await self._take(fact))
        now = self._clock.monotonic()
        await self._carry_out(self._queue.due(now))
        for what, rank in self._silence.due(now, self._expected):
            if what == "ask":
                self._peers.tell(rank, ReportCalls())
            elif what == "silent":
                await self._carry_out(self._queue.silent(rank, now))
            else:
                await self._carry_out(await self._gone(rank, "it was silent for too long", now))
        if self._clock.monotonic() >= self._pay.due:
            self._pay.pay(self._settlement, self._clock.monotonic())

    async def _take(self, fact: Fact[MapWord] | None) -> list[QueueAction]:
        now = self._clock.monotonic()
        match fact:
            case PeerCame(rank):
                self._silence.heard(rank, now)
                self._peers.tell(rank, preparation_of(self._section, self._tree))
            case PeerGone(rank, reason):
                return await self._gone(rank, reason, now)
            case WorkerSaid(rank, word):
                return await self._word(rank, word, now)
            case OwnerSaid(rank, WorkerPaused()):
                return self._queue.paused(rank, now)
            case OwnerSaid(rank, WorkerResumed()):
                self._silence.heard(rank, now)
                return self._queue.resumed(rank, now)
            case OwnerSaid(rank, HandBack()):
                return self._queue.leaves(rank, now)
            case None:
                return self._look_at_program(now)
        return []

    def _look_at_program(self, now: float) -> list[QueueAction]:
        """The actions that the program that calls, or its owner, wants."""
        actions = self._queue.hold(now) if self._peers.pausing else []
        if self._live is None:
            return actions
        news = self._live.news(self._queue.items)
        if news.more:
            actions += self._queue.add(news.more, now)
            self._journal.change(items=self._queue.items)
        if dropped := [ItemResult(item, "cancelled", b"", "") for item in news.cancelled if self._queue.drop(item)]:
            self._keeping.put(dropped, [None] * len(dropped))
        if news.complete:
            actions += self._queue.close(now)
        return actions

    async def _word(self, rank: int, word: MapWord, now: float) -> list[QueueAction]:
        actions = self._queue.answers(rank, now)
        match word:
            case AtWork():
                if rank not in self._peers.reported:
                    self._peers.reported.add(rank)
                    actions += self._joined(rank, word, now)
            case ChunkBegun(chunk=chunk):
                if self._queue.awaited(rank, chunk):
                    self._acceptance.begun(rank, chunk, now)
                actions += self._queue.begun(rank, chunk, now)
            case BlobsLacking(names=names):
                try:
                    self._sending.lacking(rank, names)
                except PeerMisbehaved as error:
                    self._peers.must_go(rank, error.message)
            case ChunkOver():
                actions += self._chunk_over(rank, word, now)
            case ArrivedResults():
                actions += await self._results(rank, word, now)
        return actions

    def _joined(self, rank: int, word: AtWork, now: float) -> list[QueueAction]:
        place = place_of(self._peers.crew.leases[rank])
        held = word.chunks if place in self._served else ()
        self._served.add(place)
        cores = min(word.cores, self._need.cores)
        actions = self._queue.joined(rank, cores, now, held, peer=self._peers.key(rank))
        # Nobody knows since when it is at what it has: it is paid for what it does from now on.
        for chunk in self._queue.chunks_at(rank):
            self._acceptance.begun(rank, chunk.number, now)
        return actions

    async def _results(self, rank: int, came: ArrivedResults, now: float) -> list[QueueAction]:
        awaited = self._queue.awaited(rank, came.chunk)
        if not awaited or awaited[0] != came.first:
            return []  # of a chunk that is over, or said to an earlier life of the client
        if len(came.outcomes) > len(awaited):
            self._peers.must_go(rank, "it has more results than calls")
            return []
        lease = self._peers.crew.leases[rank]
        groups = await self._acceptance.came(rank, lease, awaited[: len(came.outcomes)], came, now)
        return self._queue.results(rank, came.chunk, [one.raised for one in came.outcomes], now, groups)

    def _chunk_over(self, rank: int, over: ChunkOver, now: float) -> list[QueueAction]:
        self._acceptance.over(rank, over.chunk)
        self._sending.over(rank, over.chunk, self._peers.crew)
        crashed = over.reason or "it ended" if over.why == "crashed" else ""
        awaited = self._queue.awaited(rank, over.chunk)
        if crashed and awaited:
            name = self._peers.name(rank)
            self._journal.tell(ChunkCrashed(chunk=over.chunk, item=awaited[0], peer=name, reason=crashed))
        return self._queue.over(rank, over.chunk, now, seconds=over.seconds, crashed=crashed)

    async def _gone(self, rank: int, reason: str, now: float) -> list[QueueAction]:
        await self._keeping.finished()
        if self._pay.owes(place_of(self._peers.crew.leases[rank])):  # while it may still sign
            self._pay.pay(self._settlement, now)
            await self._journal.disk.finished()
        await self._sending.drop(rank)
        self._arriving.forget(rank)
        self._silence.forget(rank)
        self._acceptance.forget(rank)
        limit = self._peers.dismiss(rank, reason)
        over = f"it went over its limit of {limit}" if limit else ""
        return self._queue.lost(rank, now, own_fault=bool(limit), reason=over)

    # --- what is done about it ---

    async def _carry_out(self, actions: list[QueueAction]) -> None:
        for action in actions:
            match action:
                case StartChunk():
                    await self._start(action)
                case StopChunk(rank=rank, chunk=chunk, only_waiting=only_waiting):
                    self._peers.tell(rank, EndChunk(chunk=chunk, only_waiting=only_waiting))
                case Distrust():
                    await self._distrust(action)
                case SetAside(rank=rank, items=items):
                    self._set_aside(rank, items, action.reason)
                case _:
                    name, queue = self._peers.name(action.rank), self._queue
                    self._acceptance.carry_out(action, name, queue.items, queue.opinions_awaited)

    def _set_aside(self, rank: int, items: Sequence[int], reason: str) -> None:
        self._journal.tell(PeerSetAside(peer=self._peers.name(rank), items=list(items[:16]), reason=reason[:PLAIN]))
        self._peers.must_go(rank, reason)

    async def _distrust(self, action: Distrust) -> None:
        if action.rank is not None:
            self._set_aside(action.rank, [action.item], action.reason)
        if items := await self._acceptance.distrust(action, self._tree, again=self._live is None):
            await self._carry_out(self._queue.reopen(items, self._clock.monotonic()))

    async def _start(self, action: StartChunk) -> None:
        rank, items = action.rank, action.items
        if rank not in self._peers.there:
            return
        await self._sending.start(action, self._peers.crew)
        self._acceptance.begun(rank, action.chunk, self._clock.monotonic())
        if action.copy_of is not None:
            self._copied += 1
            slow = next((one for one in self._queue.chunks_at(action.copy_of) if items[0] in one.left), None)
            seconds = self._acceptance.age_of(slow, self._clock.monotonic()) if slow else 0.0
            peer, slow_peer = self._peers.name(rank), self._peers.name(action.copy_of)
            told = ChunkCopied(
                chunk=action.chunk, peer=peer, slow_peer=slow_peer, calls=len(items), first=items[0], seconds=seconds
            )
            self._journal.tell(told)

    # --- the end ---

    async def _close(self) -> None:
        await self._sending.drop_all()
        await self._keeping.finished()
        await self._keeping.end()
        if self._calls:
            await asyncio.to_thread(self._calls.close)
        self._keeping.record(self._clock.monotonic(), items=self._queue.items)
        self._pay.pay(self._settlement, self._clock.monotonic())

    async def _end(self) -> Event:
        await self._close()
        receipts = await self._settlement.settle()
        if paused := self._peers.paused_event(over=self._queue.over_all, may_stop=not self._tree):
            return paused
        self._journal.enter(JobState.FINISHED)
        await self._journal.disk.finished()
        return finished_event(self._journal, copied=self._copied, **self._peers.of_this_life(receipts))

    # --- small questions ---

    @property
    def _over(self) -> bool:
        over = self._queue.over_all or (self._peers.pausing and self._queue.resting)
        return self._peers.leaving or (over and self._keeping.idle)

    @property
    def _expected(self) -> set[int]:
        """Ranks that have something to do, and whose owners let them."""
        able = self._peers.there - self._peers.paused
        return {rank for rank in able if rank not in self._peers.reported or self._queue.chunks_at(rank)}

    def _quorum_of(self, rank: int) -> int:
        return self._opinions.quorum_of(self._peers.key(rank), self._others(rank))

    def _error_quorum_of(self, rank: int) -> int:
        """Where results are merged one exception ends the job."""
        return self._opinions.error_quorum_of(self._others(rank))

    def _others(self, rank: int) -> int:
        """Peers that may be asked for another opinion, now or once they have said that they are there."""
        return self._queue.other_peers(rank) + len(self._peers.there - self._peers.reported)
