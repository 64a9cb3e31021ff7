"""The driver of a bag of calls: carries out what `queue.ChunkQueue` decides.

What peers say waits in one inbox, so that one task alone moves the queue on. Results are checked where they arrive,
before the next word of that peer is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from axonp2p.client.events.events import Event, JobPaused
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.processor_time import flops_of
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.errors import AxonError, JobFailed, PeerMisbehaved, SettingsError, TaskError
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import HandBack, OwnersMessage, WorkerPaused
from axonp2p.kinds.map.arriving_results import ArrivedResults, ArrivingResults
from axonp2p.kinds.map.call_forms import LARGEST_IN_CHUNK, pack_error
from axonp2p.kinds.map.call_pay import PAY_EVERY_S, CallPay, place_of
from axonp2p.kinds.map.calls.calls_store import BLOBS, CallsStore
from axonp2p.kinds.map.calls.live_calls import LiveCalls
from axonp2p.kinds.map.chunk_sending import ChunkSending
from axonp2p.kinds.map.events import (
    CallFailed,
    ChunkCopied,
    ChunkCrashed,
    ChunkDone,
    OpinionAwaited,
    PeerOutvoted,
    PeerSetAside,
    ResultsDoubted,
)
from axonp2p.kinds.map.kept_end import RESULTS, finished_event, open_results
from axonp2p.kinds.map.merge_calls import MergeCalls
from axonp2p.kinds.map.messages import (
    AtWork,
    BlobsLacking,
    CallResults,
    ChunkBegun,
    ChunkOver,
    EndChunk,
    FromWorkerMap,
    ReportCalls,
    ResultPart,
    ToWorkerMap,
)
from axonp2p.kinds.map.opinions.second_opinions import SecondOpinions, digest_of
from axonp2p.kinds.map.peer_silence import PeerSilence
from axonp2p.kinds.map.queue import ChunkQueue
from axonp2p.kinds.map.queue_actions import (
    Distrust,
    KeepCrash,
    KeepOpinions,
    KeepResults,
    KeepUndecided,
    QueueAction,
    QueuePlan,
    SetAside,
    StartChunk,
    StopChunk,
)
from axonp2p.kinds.map.record import MapRecord
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.kinds.map.result_keeping import ResultKeeping
from axonp2p.kinds.map.results_store import ItemOpinion, ItemResult, ResultsStore, WorkDone
from axonp2p.kinds.map.section import MapJob, preparation_of
from axonp2p.plain_text import plural
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

MOST_WAITING = 2048
"""Words of one peer that wait for this driver: one that says more breaks the protocol."""
REPORT_S = 5.0
"""For so long peers of an earlier life may take to say what they have before their calls are begun at others."""
MOST_TOLD = 20
"""Calls that failed which are told as events."""

_Word = AtWork | ChunkBegun | ChunkOver | BlobsLacking | ArrivedResults
_Fact = tuple[int, _Word | OwnersMessage | str] | BaseException | None


class MapDriver:
    """`client.run.driver.Driver`, and the crew's `WorkListener`."""

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
        self._inbox: asyncio.Queue[_Fact] = asyncio.Queue()
        store = ResultsStore(self._journal.folder.path / RESULTS)
        self._keeping = ResultKeeping(self._journal, store, self._pay, self._live, self._inbox.put_nowait)
        self._store = store
        self._opinions = SecondOpinions(
            self._section,
            self._journal,
            store,
            context.means.trust,
            chance or random.SystemRandom().random,
            self._keeping.finished,
        )
        self._waiting: Counter[int] = Counter()
        self._arriving: dict[int, ArrivingResults] = {}
        self._silence = PeerSilence()
        self._reported: set[int] = set()
        """Ranks that said what they have."""
        self._misbehaved: set[int] = set()
        self._paused: set[int] = set()
        self._since: dict[tuple[int, int], float] = {}
        """When the results of a chunk, by rank and number, came last; or when it was sent."""
        self._came: ArrivedResults | None = None
        self._groups: list[int] = []
        """To which opinions of their items those results are equal that came last."""
        self._came_seconds = 0.0
        """How long the calls took whose results came last."""
        self._fails_at: float | None = None
        """When the job fails because nobody is there who could give another opinion."""
        self._unwanted: set[int] = set()
        """Items that the program cancelled and that are not in the queue yet."""
        self._tree: ReduceTree | None = None
        self._first_failure = ""
        self._told_failed = self._copied = 0
        self._begun = self._leaving = self._pausing = self._stopping = False

    # --- `Driver` ---

    def open(self, book: ReceiptBook) -> None:
        """`Driver`."""
        found = open_results(self._journal, self._store, self._pay, book, self._clock.now())
        record, section = self._record, self._section
        self._opinions.open()
        outvoted = self._store.outvoted()
        sizes = None
        if section.calls:
            self._calls = CallsStore(self._journal.folder.path)
            sizes = self._live.sizes if self._live else self._calls.sizes()
            self._calls.close()
        self._tree = self._store.tree()
        plan = QueuePlan(
            items=record.items,
            finished=found,
            tree=self._tree,
            retries=section.retries,
            chunk=section.chunk,
            first_chunk=(record.lives + 1) << 24,
            weigh=self._weigh if sizes is None else sizes.__getitem__,
            group=self._live.groups.__getitem__ if self._live else lambda item: int(self._merges(item)),
            closed=self._live is None,
            quorum=self._quorum_of,
            opinions=self._opinions.for_queue(),
            outvoted=outvoted,
        )
        self._queue = ChunkQueue(plan)
        self._store.close()
        blobs = self._journal.folder.path / BLOBS
        merges = MergeCalls(self._tree, self._store, self._keeping.finished, blobs) if self._tree else None
        self._sending = ChunkSending(blobs, self._not_sent, self._calls, self._live, merges)

    def pause(self) -> None:
        """`Driver`."""
        self._pausing = True
        self._inbox.put_nowait(None)

    def stop(self) -> None:
        """`Driver`."""
        self._stopping = True
        self.pause()

    def leave(self) -> None:
        """`Driver`."""
        self._leaving = True
        self._inbox.put_nowait(None)

    async def run(self, settlement: JobSettlement) -> Event | None:
        """`Driver`."""
        self._settlement = settlement
        self._pay.due = self._clock.monotonic() + PAY_EVERY_S
        self._keeping.begin(self._record.results, self._record.failed)
        try:
            if not await self._work(settlement.crew):
                return None
            last = await self._end(settlement)
        except asyncio.CancelledError:
            await self._pay_last(settlement, settle=False)
            raise
        except AxonError:
            await self._pay_last(settlement, settle=True)
            raise
        return last

    async def _work(self, crew: LeasedCrew) -> bool:
        """Until it is over; false: too few peers are left, and others are waited for."""
        crew.work_for(self)
        if self._live:
            loop = asyncio.get_running_loop()
            self._live.attach(partial(_wake, loop, self._inbox))
        for rank in crew.present.keys() - self._reported:
            self._greet(rank)
        # In the first life no peer has calls of an earlier one.
        begin_by = self._clock.monotonic() + (REPORT_S if self._record.lives > 1 else 0.0)
        async with self._context.replacing(crew):
            while not self._over:
                if not self._there and self._inbox.empty() and not self._queue.over_all:
                    if self._context.may_wait(crew):
                        return False
                    raise JobFailed(
                        "no peers are left", cause="; ".join(self._journal.names_lost),
                        fix=f"axon resume {self._journal.record.id}",
                    )  # fmt: skip
                if not self._begun and (self._there <= self._reported or self._clock.monotonic() >= begin_by):
                    self._begun = True
                    if not self._pausing:
                        await self._carry_out(self._queue.begin(self._clock.monotonic()))
                self._look_for_voices()
                self._look_for_failures()
                await self._hear(begin_by)
        return True

    def _look_for_voices(self) -> None:
        """Wait for replacements where nobody is left who could give another opinion, and fail after that."""
        if not (self._begun and self._queue.lacks_voices and self._inbox.empty() and self._keeping.idle):
            self._fails_at = None
            return
        now = self._clock.monotonic()
        self._fails_at = self._fails_at or now + self._need.wait
        if now >= self._fails_at:
            waits = plural(self._queue.opinions_awaited, "result")
            raise JobFailed(
                f"{waits} wait for the opinion of another peer, and there is none",
                cause=f"those that are there have given theirs: {', '.join(sorted(map(self._name, self._there)))}",
                fix=f"axon resume {self._record.id}, once there are more peers; "
                "a function whose results differ from call to call needs quorum = 1",
            )

    def _look_for_failures(self) -> None:
        """Where results are merged, none can be missing."""
        if self._tree and (failed := self._keeping.failed):
            raise JobFailed(
                f"{plural(failed, 'call')} of {self._tree.calls:,} failed, so the results cannot be merged",
                cause=self._first_failure,
                fix=f"correct {self._section.fn} so that it returns a value for every item, and submit the job again",
            )

    # --- `WorkListener` ---

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        """`WorkListener`."""
        if rank in self._misbehaved:
            return
        self._silence.heard(rank, self._clock.monotonic())
        try:
            frame = split_frame(payload)
            message = decode(frame.header, FromWorkerMap, HEADER_LIMIT)
            match message:
                case ResultPart():
                    self._arriving_of(rank).part(message, frame.payload)
                case CallResults():
                    if arrived := await self._arrived(rank, message, frame.payload):
                        self._put(rank, arrived)
                        await self._keeping.room()
                case AtWork() | ChunkBegun() | ChunkOver() | BlobsLacking():
                    self._put(rank, message)
        except PeerMisbehaved as error:
            self._misbehaved.add(rank)
            await self.lost(rank, f"its worker broke the protocol: {error.message}")

    async def joined(self, rank: int, name: str) -> None:
        """`WorkListener`."""
        self._greet(rank)

    async def lost(self, rank: int, reason: str) -> None:
        """`WorkListener`."""
        self._inbox.put_nowait((rank, reason))

    async def link_lost(self, rank: int, to: int, reason: str) -> None:
        """`WorkListener`. Calls do not talk to each other."""

    def line_measured(self, rank: int, upload: float, download: float) -> None:
        """`WorkListener`."""

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """`WorkListener`."""
        self._inbox.put_nowait((rank, message))

    # --- what is heard ---

    def _put(self, rank: int, message: _Word) -> None:
        if self._waiting[rank] >= MOST_WAITING:
            raise PeerMisbehaved("it says more than can be dealt with")
        self._waiting[rank] += 1
        self._inbox.put_nowait((rank, message))

    def _arriving_of(self, rank: int) -> ArrivingResults:
        return self._arriving.setdefault(rank, ArrivingResults(self._section.most_result))

    async def _arrived(self, rank: int, message: CallResults, payload: memoryview) -> ArrivedResults | None:
        last = self._arriving_of(rank).last
        if message.size <= _SMALL:
            return last(message, payload)
        return await asyncio.to_thread(last, message, payload)

    def _greet(self, rank: int) -> None:
        self._silence.heard(rank, self._clock.monotonic())
        self._tell(rank, preparation_of(self._section, self._tree))

    async def _hear(self, begin_by: float) -> None:
        """Wait for the next fact, or for the time at which something is due, and do what follows."""
        now = self._clock.monotonic()
        until = [
            self._pay.due,
            self._queue.next_deadline(),
            self._silence.next_deadline(self._expected),
            None if self._begun else begin_by,
            self._fails_at,
        ]
        seconds = min(moment for moment in until if moment is not None) - now
        fact: _Fact = None
        if not self._inbox.empty():  # which a wait of no seconds would leave there
            fact = self._inbox.get_nowait()
        else:
            with contextlib.suppress(TimeoutError):
                fact = await asyncio.wait_for(self._inbox.get(), max(0.0, seconds))
        await self._carry_out(await self._take(fact))
        now = self._clock.monotonic()
        await self._carry_out(self._queue.due(now))
        for what, rank in self._silence.due(now, self._expected):
            if what == "ask":
                self._tell(rank, ReportCalls())
            elif what == "silent":
                await self._carry_out(self._queue.silent(rank, now))
            else:
                await self._carry_out(await self._gone(rank, "it was silent for too long", now))
        if self._clock.monotonic() >= self._pay.due:
            self._pay.pay(self._settlement, self._clock.monotonic())

    async def _take(self, fact: _Fact) -> list[QueueAction]:
        now = self._clock.monotonic()
        match fact:
            case (rank, str() as reason):
                return await self._gone(rank, reason, now)
            case (rank, AtWork() | ChunkBegun() | ChunkOver() | BlobsLacking() | ArrivedResults() as word):
                self._waiting[rank] -= 1
                return await self._word(rank, word, now) if rank in self._there else []
            case (rank, _) if rank not in self._there:
                return []
            case (rank, WorkerPaused(reason=reason)):
                self._paused.add(rank)
                self._journal.paused(rank, self._name(rank), reason)
                return self._queue.paused(rank, now)
            case (rank, HandBack()):
                return self._queue.leaves(rank, now)
            case (rank, _):
                self._paused.discard(rank)
                self._silence.heard(rank, now)
                self._journal.resumed(rank, self._name(rank))
                return self._queue.resumed(rank, now)
            case BaseException():
                raise fact
            case None:
                return self._look_at_program(now)

    def _look_at_program(self, now: float) -> list[QueueAction]:
        """What the program that calls, or its owner, wants."""
        actions = self._queue.hold(now) if self._pausing else []
        if self._live is None:
            return actions
        if (more := self._live.stored - self._queue.items) > 0:
            actions += self._queue.add(more, now)
            self._journal.change(items=self._queue.items)
        self._unwanted.update(self._live.take_cancelled())
        known = sorted(item for item in self._unwanted if item < self._queue.items)
        self._unwanted.difference_update(known)
        if dropped := [ItemResult(item, "cancelled", b"", "") for item in known if self._queue.drop(item)]:
            self._keeping.put(dropped, [None] * len(dropped))
        if self._live.complete and self._live.stored == self._queue.items:
            actions += self._queue.close(now)
        return actions

    async def _word(self, rank: int, word: _Word, now: float) -> list[QueueAction]:
        actions = self._queue.answers(rank, now)
        match word:
            case AtWork() if rank not in self._reported:
                self._reported.add(rank)
                actions += self._queue.joined(
                    rank, min(word.cores, self._need.cores), now, word.chunks, peer=self._key(rank)
                )
            case AtWork():
                pass
            case ChunkBegun(chunk=chunk):
                self._since[rank, chunk] = now
                actions += self._queue.begun(rank, chunk, now)
            case BlobsLacking(names=names):
                try:
                    self._sending.lacking(rank, names)
                except PeerMisbehaved as error:
                    self._inbox.put_nowait((rank, error.message))
            case ChunkOver():
                actions += self._chunk_over(rank, word, now)
            case ArrivedResults():
                actions += await self._results(rank, word, now)
        return actions

    async def _results(self, rank: int, came: ArrivedResults, now: float) -> list[QueueAction]:
        awaited = self._queue.awaited(rank, came.chunk)
        if not awaited or awaited[0] != came.first:
            return []  # of a chunk that is over, or said to an earlier life of the client
        if len(came.outcomes) > len(awaited):
            self._inbox.put_nowait((rank, "it has more results than calls"))
            return []
        self._groups = await self._opinions.groups(awaited[: len(came.outcomes)], came.outcomes, came.values)
        since = self._since.get((rank, came.chunk))
        # One that an earlier life gave out has been at it for nobody knows how long, but not for longer than the job.
        age = max(0.0, self._clock.now() - self._record.created)
        self._came_seconds = min(came.cpu_seconds, age) if since is None else max(0.0, now - since)
        self._since[rank, came.chunk] = now
        self._came = came
        return self._queue.results(rank, came.chunk, [one.raised for one in came.outcomes], now, self._groups)

    def _chunk_over(self, rank: int, over: ChunkOver, now: float) -> list[QueueAction]:
        self._since.pop((rank, over.chunk), None)
        self._sending.over(rank, over.chunk, self._settlement.crew)
        crashed = over.reason or "it ended" if over.why == "crashed" else ""
        awaited = self._queue.awaited(rank, over.chunk)
        if crashed and awaited:
            self._journal.tell(ChunkCrashed(chunk=over.chunk, item=awaited[0], peer=self._name(rank), reason=crashed))
        return self._queue.over(rank, over.chunk, now, seconds=over.seconds, crashed=crashed)

    async def _gone(self, rank: int, reason: str, now: float) -> list[QueueAction]:
        crew = self._settlement.crew
        if rank not in self._there:
            return []
        await self._keeping.finished()
        if self._pay.owes(self._place(rank)):  # while it may still sign
            self._pay.pay(self._settlement, now)
            await self._journal.disk.finished()
        await self._sending.drop(rank)
        for places in (self._reported, self._paused):
            places.discard(rank)
        self._arriving.pop(rank, None)
        self._silence.forget(rank)
        self._since = {name: since for name, since in self._since.items() if name[0] != rank}
        limit = crew.leases[rank].limit
        crew.dismiss(rank, reason)
        self._journal.lost(rank, self._name(rank), reason, len(crew.present))
        over = f"it went over its limit of {limit}" if limit else ""
        return self._queue.lost(rank, now, own_fault=bool(limit), reason=over)

    # --- what is done about it ---

    async def _carry_out(self, actions: list[QueueAction]) -> None:
        for action in actions:
            match action:
                case StartChunk():
                    await self._start(action)
                case StopChunk(rank=rank, chunk=chunk, only_waiting=only_waiting):
                    self._tell(rank, EndChunk(chunk=chunk, only_waiting=only_waiting))
                case KeepResults():
                    self._keep(action)
                case KeepCrash(rank=rank, item=item, reason=reason):
                    error = TaskError("Crashed", f"its process ended each time: {reason}")
                    value = pack_error(error.kind, error.reason)
                    self._opinions.drop(item)
                    self._keep_error(error, ItemResult(item, "error", value, self._name(rank), agreed=0))
                case KeepOpinions():
                    self._keep_opinions(action)
                case KeepUndecided(rank=rank, item=item, peers=peers):
                    self._keep_error(*self._opinions.undecided(item, peers, self._name(rank)))
                case Distrust():
                    await self._distrust(action)
                case SetAside(rank=rank, items=items):
                    reason = "its results differed from those of others"
                    if items:
                        reason = f"it failed in calls that others could do: items {', '.join(map(str, items[:16]))}"
                    self._set_aside(rank, items, reason)

    def _set_aside(self, rank: int, items: Sequence[int], reason: str) -> None:
        self._journal.tell(PeerSetAside(peer=self._name(rank), items=list(items[:16]), reason=reason[:_PLAIN]))
        self._inbox.put_nowait((rank, reason))

    async def _distrust(self, action: Distrust) -> None:
        """A peer lost against several: nothing is believed that it alone has said."""
        name = self._opinions.distrust(action.peer)
        await self._keeping.finished()
        # What the program was given it cannot give back.
        again = self._live is None
        found = await asyncio.to_thread(partial(self._store.distrust, action.peer, name, again=again))
        if action.rank is not None:
            reason = f"its results differ from those of {plural(action.others, 'other')}"
            self._set_aside(action.rank, [action.item], reason)
        if not found:
            return
        items = [item for item, _ in found]
        outcomes = [outcome for _, outcome in found]
        if self._tree:
            above = sorted(self._tree.above(items))
            for item in above:
                self._opinions.drop(item)
            outcomes += await asyncio.to_thread(self._store.forget, above)
        back, taken = (len(items), 0) if again else (0, len(items))
        self._journal.tell(ResultsDoubted(peer=name, again=back, taken=taken, items=items[:16]))
        if again:
            self._keeping.took_back(outcomes)
            await self._carry_out(self._queue.reopen(items, self._clock.monotonic()))

    def _not_sent(self, rank: int, error: AxonError) -> None:
        """A peer cannot have a blob: a fault of this disk ends the job, all else the peer's part in it."""
        mine = isinstance(error, SettingsError | JobFailed)
        self._inbox.put_nowait(error if mine else (rank, f"it did not take what its calls need: {error.message}"))

    async def _start(self, action: StartChunk) -> None:
        rank, items = action.rank, action.items
        if rank not in self._there:
            return
        await self._sending.start(action, self._settlement.crew)
        self._since[rank, action.chunk] = self._clock.monotonic()
        if action.copy_of is not None:
            self._copied += 1
            slow, now = self._name(action.copy_of), self._clock.monotonic()
            since = [at for (at_rank, chunk), at in self._since.items()
                     if at_rank == action.copy_of and items[0] in self._queue.awaited(at_rank, chunk)]  # fmt: skip
            copied = ChunkCopied(
                chunk=action.chunk, peer=self._name(rank), slow_peer=slow, calls=len(items), first=items[0],
                seconds=max(0.0, now - min(since, default=now)),
            )  # fmt: skip
            self._journal.tell(copied)

    def _keep(self, action: KeepResults) -> None:
        came, rank = self._came, action.rank
        assert came is not None
        peer = self._name(rank)
        results, values, work = [], [], list[WorkDone]()
        outvoted: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        alone = 0
        for place, item in zip(action.places, action.items, strict=True):
            outcome = came.outcomes[place]
            verdict = action.verdicts.get(item)
            agreed = len(verdict.agreed) if verdict else 1
            results.append(ItemResult(item, "error" if outcome.raised else "value", outcome.value, peer, agreed))
            values.append(came.values[place])
            if verdict is None:
                alone += 1
                continue
            settled = self._opinions.settle(item, verdict, self._opinion_of(rank, place, item, agreed))
            work += settled.work
            if settled.outvoted:
                outvoted.setdefault(tuple(settled.agreed), []).extend((one, item) for one in settled.outvoted)
        if alone:
            flops, milliseconds = self._share(rank, alone)
            work.append(WorkDone(self._place(rank), action.items[-1], flops, milliseconds))
        events: list[Any] = list(self._failures(results, values))
        for others, lost in outvoted.items():
            for name, calls in Counter(one for one, _ in lost).items():
                first = next(item for one, item in lost if one == name)
                told = PeerOutvoted(peer=name, others=list(others), calls=calls, first=first)
                events.append(lambda done, failed, told=told: told)
        events.append(
            partial(
                _chunk_done, action.chunk, peer, results, self._came_seconds, self._queue.items,
                self._queue.opinions_awaited,
            )
        )  # fmt: skip
        self._keeping.put(results, values, work, events)

    def _keep_opinions(self, action: KeepOpinions) -> None:
        rank, places = action.rank, action.places
        opinions = [
            self._opinion_of(rank, place, item, action.needed) for place, item in zip(places, action.items, strict=True)
        ]
        self._opinions.keep(opinions)
        told = OpinionAwaited(
            peer=self._name(rank), calls=len(opinions), first=action.items[0], needed=action.needed,
            awaited=self._queue.opinions_awaited,
        )  # fmt: skip
        self._keeping.put([], [], events=[lambda done, failed: told], opinions=opinions)

    def _keep_error(self, error: TaskError, result: ItemResult) -> None:
        """A result that is no peer's."""
        self._keeping.put([result], [error], events=self._failures([result], [error]))

    def _opinion_of(self, rank: int, place: int, item: int, needed: int) -> ItemOpinion:
        assert self._came is not None
        outcome, value = self._came.outcomes[place], self._came.values[place]
        flops, milliseconds = self._share(rank, 1)
        return ItemOpinion(
            item, self._key(rank), self._name(rank), self._place(rank), self._came.chunk, self._groups[place], needed,
            "error" if outcome.raised else "value", outcome.value, digest_of(outcome, value), flops, milliseconds,
        )  # fmt: skip

    def _share(self, rank: int, calls: int) -> tuple[int, int]:
        """Operations and milliseconds of so many of the calls whose results came last: others are not paid."""
        came = self._came
        assert came is not None
        share = calls / len(came.outcomes)
        cpu_seconds = min(came.cpu_seconds, self._need.cores * self._came_seconds) * share
        capability = self._settlement.crew.leases[rank].row.capability
        return flops_of(cpu_seconds, capability), round(1000 * self._came_seconds * share)

    def _failures(self, results: list[ItemResult], values: list[Any]) -> list[Any]:
        found = []
        for result, value in zip(results, values, strict=True):
            if isinstance(value, TaskError) and self._told_failed < MOST_TOLD:
                self._told_failed += 1
                kind, message = value.kind[:_PLAIN], value.reason[:_PLAIN]
                self._first_failure = self._first_failure or f"call {result.item}: {kind}: {message}"
                event = CallFailed(item=result.item, peer=result.peer, kind=kind, message=message)
                found.append(lambda done, failed, event=event: event)
        return found

    # --- the end ---

    async def _pay_last(self, settlement: JobSettlement, *, settle: bool) -> None:
        """The job ends without its end: what was accepted is paid all the same, as far as the disk takes it."""
        with contextlib.suppress(AxonError, OSError):
            await self._close()
            self._pay.pay(settlement, self._clock.monotonic())
            await self._journal.disk.finished()
            if settle:
                await settlement.settle()

    async def _close(self) -> None:
        await self._sending.drop_all()
        await self._keeping.finished()
        await self._keeping.end()
        if self._calls:
            await asyncio.to_thread(self._calls.close)
        self._keeping.record(self._clock.monotonic(), items=self._queue.items)

    async def _end(self, settlement: JobSettlement) -> Event:
        await self._close()
        self._pay.pay(settlement, self._clock.monotonic())
        receipts = await settlement.settle()
        record, folder = self._record, str(self._journal.folder.path)
        if not self._queue.over_all and (self._leaving or not self._stopping or not record.results or self._tree):
            self._journal.enter(JobState.PAUSED)
            return JobPaused(job=record.id, folder=folder, round=record.results)
        self._journal.enter(JobState.FINISHED)
        await self._journal.disk.finished()
        return finished_event(
            self._journal,
            copied=self._copied,
            seconds=self._clock.monotonic() - self._context.began,
            receipts=receipts,
            peers=list(settlement.crew.present.values()),
            lost=self._journal.names_lost,
        )

    # --- small questions ---

    @property
    def _record(self) -> MapRecord:
        record = self._journal.record
        assert isinstance(record, MapRecord)
        return record

    @property
    def _over(self) -> bool:
        if self._leaving:
            return True
        return (self._queue.over_all or (self._pausing and self._queue.resting)) and self._keeping.idle

    @property
    def _expected(self) -> set[int]:
        """Ranks that have something to do, and whose owners let them."""
        able = self._there - self._paused
        return {rank for rank in able if rank not in self._reported or self._queue.chunks_at(rank)}

    @property
    def _there(self) -> set[int]:
        """Ranks as the record has them: the crew misses a peer before this driver has dealt with what it said last."""
        return {peer.rank for peer in self._record.peers if not peer.lost}

    def _merges(self, item: int) -> bool:
        return self._tree is not None and self._tree.merges(item)

    def _weigh(self, item: int) -> int:
        """A call of the job's own function is its number; one that merges brings the results, or the name of a blob."""
        return LARGEST_IN_CHUNK if self._merges(item) else 0

    def _place(self, rank: int) -> str:
        lease = self._settlement.crew.leases[rank]
        return place_of(lease.promise.uuid, lease.row.peer)

    def _key(self, rank: int) -> str:
        key: str = self._settlement.crew.leases[rank].row.peer
        return key

    def _quorum_of(self, rank: int) -> int:
        return self._opinions.quorum_of(self._key(rank), self._queue.other_peers(rank))

    def _tell(self, rank: int, message: ToWorkerMap) -> None:
        self._settlement.crew.tell(rank, pack_frame(message))

    def _name(self, rank: int) -> str:
        return self._settlement.crew.leases[rank].name


_SMALL = 64 * 1024
"""Bytes of results that are opened without a thread."""
_PLAIN = 256


def _chunk_done(
    chunk: int, peer: str, came: list[ItemResult], seconds: float, items: int, awaited: int, done: int, failed: int
) -> ChunkDone:
    errors = sum(one.outcome == "error" for one in came)
    return ChunkDone(
        chunk=chunk, peer=peer, calls=len(came), first=came[0].item, seconds=seconds, done=done, items=items,
        failed=failed, errors=errors, awaited=awaited,
    )  # fmt: skip


def _wake(loop: asyncio.AbstractEventLoop, inbox: asyncio.Queue[_Fact]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(inbox.put_nowait, None)
