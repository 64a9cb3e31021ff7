"""The driver of one command on N peers: carries out what `copies.CopyScheduler` decides, and keeps what comes home.

What peers say waits in one inbox, so that one task alone moves the machine on; bytes of files go past it to the disk,
and no more is read of a peer while its last part is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

from axonp2p.client.events.events import Event, JobPaused
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.errors import AxonError, JobFailed, PeerMisbehaved, SettingsError
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import HandBack, OwnersMessage, WorkerPaused
from axonp2p.jobs.output_messages import OutputFile, OutputPart, OutputsSent
from axonp2p.kinds.run.answers_due import ANSWER_S, AnswersDue
from axonp2p.kinds.run.copies import CopyScheduler
from axonp2p.kinds.run.copy_actions import CopiesPlan, CopyAction, KeepResult, StartCopy, StopCopy
from axonp2p.kinds.run.copy_ends import CopyEnds, event_of, over_its_limit
from axonp2p.kinds.run.copy_pay import PAY_EVERY_S, CopyPay
from axonp2p.kinds.run.events import (
    CopyBegun,
    CopyRetried,
    IndexFailed,
    OutputsKept,
    SpeculativeCopy,
)
from axonp2p.kinds.run.kept_end import finished_event, open_results
from axonp2p.kinds.run.messages import (
    CopyExited,
    CopyStarted,
    EndCopy,
    FromWorkerRun,
    NoCopy,
    ReportCopy,
    ToWorkerRun,
)
from axonp2p.kinds.run.record import RunRecord
from axonp2p.kinds.run.result_keeper import ResultKeeper
from axonp2p.kinds.run.section import RunJob, order_for
from axonp2p.verification.signed_frames import SignedFrame
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

MOST_WAITING = 64
"""Words of one peer that wait for this driver: one that says more breaks the protocol."""
REPORT_S = 5.0
"""For so long peers may take to say what they run before copies are begun at others."""


class RunDriver:
    """`client.run.driver.Driver`, and the crew's `WorkListener`."""

    def __init__(self, context: JobContext) -> None:
        assert isinstance(context.spec, RunJob)
        self._context = context
        self._need, self._section = context.spec.need, context.spec.run
        self._journal = context.journal
        self._clock = context.means.clock
        self._copies = CopyScheduler(CopiesPlan(self._section.copies))
        self._inbox: asyncio.Queue[_Fact] = asyncio.Queue()
        self._waiting: Counter[int] = Counter()
        self._reported: set[int] = set()
        """Ranks that said what they run."""
        self._started: dict[int, tuple[int, int]] = {}
        """Index and attempt of the copy that each member said it has begun."""
        self._misbehaved: set[int] = set()
        """Ranks of which nothing more is heard."""
        self._answers = AnswersDue()
        self._ends = CopyEnds(self._need.cores)
        self._pay = CopyPay(self._journal)
        self._keeper = ResultKeeper(self._journal, self._section, self._ends, self._pay)
        self._begun = self._leaving = self._pausing = self._stopping = False

    # --- `Driver` ---

    def open(self, book: ReceiptBook) -> None:
        """`Driver`."""
        found = open_results(self._journal, self._keeper, self._pay, book, self._clock.now())
        section = self._section
        self._copies = CopyScheduler(
            CopiesPlan(section.copies, section.restart, section.attempts, section.together, frozenset(found))
        )

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
        for rank in crew.present.keys() - self._reported:
            self._greet(rank)
        begin_by = self._clock.monotonic() + REPORT_S
        async with self._context.replacing(crew):
            while not self._over:
                if self._too_few and self._inbox.empty():
                    if self._context.may_wait(crew):
                        return False
                    raise JobFailed(
                        f"only {len(self._there)} of at least {self._copies.needed} peers are left",
                        cause="; ".join(self._journal.names_lost),
                        fix=f"axon resume {self._journal.record.id}",
                    )
                if not self._begun and (self._there <= self._reported or self._clock.monotonic() >= begin_by):
                    self._begun = True
                    if not self._pausing:
                        await self._carry_out(self._copies.begin(self._clock.monotonic()))
                await self._hear(begin_by)
        return True

    # --- `WorkListener` ---

    async def heard(self, rank: int, payload: memoryview, *, signed: SignedFrame | None) -> None:
        """`WorkListener`."""
        if rank in self._misbehaved:
            return
        try:
            frame = split_frame(payload)
            message = decode(frame.header, FromWorkerRun, HEADER_LIMIT)
            match message:
                case OutputPart() | OutputFile():
                    if await self._keeper.heard(rank, message, frame.payload):
                        self._answers.goes_on(rank, self._clock.monotonic())
                case OutputsSent():
                    if await self._keeper.heard(rank, message, b""):
                        self._put(rank, message)
                case NoCopy() | CopyStarted() | CopyExited():
                    self._put(rank, message)
        except PeerMisbehaved as error:
            self._misbehaved.add(rank)
            await self.lost(rank, f"its worker broke the protocol: {error.message}")
        except SettingsError as error:  # this disk's, not the peer's
            self._inbox.put_nowait(error)

    async def joined(self, rank: int, name: str) -> None:
        """`WorkListener`."""
        self._greet(rank)

    async def lost(self, rank: int, reason: str) -> None:
        """`WorkListener`."""
        self._inbox.put_nowait((rank, reason))

    async def link_lost(self, rank: int, to: int, reason: str) -> None:
        """`WorkListener`. Copies do not talk to each other."""

    def line_measured(self, rank: int, upload: float, download: float) -> None:
        """`WorkListener`."""

    def owner_says(self, rank: int, message: OwnersMessage) -> None:
        """`WorkListener`."""
        self._inbox.put_nowait((rank, message))

    # --- what is heard ---

    def _put(self, rank: int, message: CopyStarted | CopyExited | NoCopy | OutputsSent) -> None:
        if self._waiting[rank] >= MOST_WAITING:
            raise PeerMisbehaved("it says more than can be dealt with")
        self._waiting[rank] += 1
        self._inbox.put_nowait((rank, message))

    def _greet(self, rank: int) -> None:
        self._tell(rank, ReportCopy())

    async def _hear(self, begin_by: float) -> None:
        """Wait for the next fact, or for the time at which something is due, and do what follows."""
        now = self._clock.monotonic()
        until = [
            self._pay.due,
            self._copies.next_deadline(),
            self._answers.next_deadline(),
            None if self._begun else begin_by,
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
        await self._carry_out(self._copies.due(now))
        for rank, seconds in self._answers.late(now) if self._inbox.empty() else ():
            await self._carry_out(await self._gone(rank, f"it was silent for {seconds:g} s", now))
        if self._clock.monotonic() >= self._pay.due:
            self._pay.pay(self._settlement, self._clock.monotonic())

    async def _take(self, fact: _Fact) -> list[CopyAction]:
        now = self._clock.monotonic()
        match fact:
            case (rank, str() as reason):
                return await self._gone(rank, reason, now)
            case (rank, CopyStarted() | CopyExited() | NoCopy() | OutputsSent() as message):
                self._waiting[rank] -= 1
                return await self._word(rank, message, now) if rank in self._there else []
            case (rank, _) if rank not in self._there:
                return []
            case (rank, WorkerPaused(reason=reason)):
                self._answers.paused(rank)
                self._journal.paused(rank, self._name(rank), reason)
                return self._copies.paused(rank, now)
            case (rank, HandBack()):
                return self._copies.leaves(rank, now)
            case (rank, _):
                self._answers.resumed(rank, now)
                self._journal.resumed(rank, self._name(rank))
                return self._copies.resumed(rank, now)
            case SettingsError():
                raise fact
            case None:
                if self._pausing:
                    self._copies.hold()
                return []

    async def _word(
        self, rank: int, message: CopyStarted | CopyExited | NoCopy | OutputsSent, now: float
    ) -> list[CopyAction]:
        actions: list[CopyAction] = []
        if isinstance(message, OutputsSent):
            await self._keep(rank)
            return actions
        if isinstance(message, CopyStarted) and self._started.get(rank) == (message.index, message.attempt):
            return actions
        if not self._keeper.expects(rank):
            self._answers.answered(rank)
        if isinstance(message, CopyStarted):
            self._started[rank] = (message.index, message.attempt)
            if self._section.timeout:  # which its worker may not mind
                self._answers.asked(rank, now, self._section.timeout + ANSWER_S)
        if rank not in self._reported:
            self._reported.add(rank)
            runs = None if isinstance(message, NoCopy) else (message.index, message.attempt)
            actions += self._copies.joined(rank, now, runs)
        if isinstance(message, CopyExited) and self._copies.runs_at(rank) == (message.index, message.attempt):
            believed = self._ends.ended(rank, message, now, self._age)
            self._journal.tell(event_of(believed, self._name(rank)))
            told = message.ended == "order"
            actions += self._copies.exited(rank, message.index, message.attempt, now, good=message.good, told=told)
        return actions

    async def _gone(self, rank: int, reason: str, now: float) -> list[CopyAction]:
        crew = self._settlement.crew
        if rank not in self._there:
            return []
        if self._pay.owes(rank):  # while it may still sign
            self._pay.pay(self._settlement, now)
            await self._journal.disk.finished()
        await self._keeper.drop(rank)
        self._reported.discard(rank)
        self._started.pop(rank, None)
        self._answers.answered(rank)
        limit = crew.leases[rank].limit
        if runs := self._copies.runs_at(rank):
            self._ends.came_to_nothing(runs[0], reason)
            if limit:
                self._ends.ended(rank, over_its_limit(*runs, limit), now, self._age)
        crew.dismiss(rank, reason)
        self._journal.lost(rank, self._name(rank), reason, len(crew.present))
        return self._copies.lost(rank, now, own_fault=bool(limit))

    # --- what is done about it ---

    async def _carry_out(self, actions: list[CopyAction]) -> None:
        for action in actions:
            match action:
                case StartCopy():
                    self._start(action)
                case StopCopy(rank=rank, index=index, attempt=attempt):
                    self._tell(rank, EndCopy(index=index, attempt=attempt))
                case KeepResult(good=True):
                    await self._fetch(action)
                case KeepResult():
                    await self._counted(await self._keeper.fail(action, self._name(action.rank)))

    def _start(self, action: StartCopy) -> None:
        rank, index, attempt = action.rank, action.index, action.attempt
        name = self._name(rank)
        self._tell(rank, order_for(self._journal.record.id, self._section, index, attempt))
        self._ends.begun(rank, index, attempt, self._clock.monotonic())
        if action.cause == "first":
            self._journal.tell(CopyBegun(index=index, attempt=attempt, peer=name))
        elif action.cause == "again":
            reason = self._ends.why_again(index)
            self._journal.tell(CopyRetried(index=index, attempt=attempt, peer=name, reason=reason))
        else:
            slow = next((other for other, one in self._copies.running.items() if one == index and other != rank), None)
            slow_peer = "" if slow is None else self._name(slow)
            self._journal.tell(SpeculativeCopy(index=index, attempt=attempt, peer=name, slow_peer=slow_peer))

    async def _fetch(self, result: KeepResult) -> None:
        if order := await self._keeper.fetch(result):
            self._tell(result.rank, order)
        else:
            await self._keep(result.rank)

    async def _keep(self, rank: int) -> None:
        if kept := await self._keeper.keep(rank, self._settlement):
            self._answers.answered(rank)
            await self._counted(kept)

    async def _counted(self, result: OutputsKept | IndexFailed) -> None:
        self._journal.tell(result)
        await self._carry_out(self._copies.kept(result.index, self._clock.monotonic()))

    # --- the end ---

    async def _pay_last(self, settlement: JobSettlement, *, settle: bool) -> None:
        """The job ends without its end: what was accepted is paid all the same, as far as the disk takes it."""
        await self._keeper.drop_all()
        with contextlib.suppress(AxonError, OSError):
            self._pay.pay(settlement, self._clock.monotonic())
            await self._journal.disk.finished()
            if settle:
                await settlement.settle()

    async def _end(self, settlement: JobSettlement) -> Event:
        await self._keeper.drop_all()
        self._pay.pay(settlement, self._clock.monotonic())
        receipts = await settlement.settle()
        record, folder = self._record, str(self._journal.folder.path)
        if not self._copies.over and (self._leaving or not self._stopping or not record.results):
            self._journal.enter(JobState.PAUSED)
            return JobPaused(job=record.id, folder=folder, round=record.results)
        self._journal.enter(JobState.FINISHED)
        await self._journal.disk.finished()
        failed = await asyncio.to_thread(self._keeper.failed_indices)
        return finished_event(
            self._journal,
            failed,
            seconds=self._clock.monotonic() - self._context.began,
            receipts=receipts,
            peers=list(settlement.crew.present.values()),
            lost=self._journal.names_lost,
        )

    # --- small questions ---

    @property
    def _record(self) -> RunRecord:
        record = self._journal.record
        assert isinstance(record, RunRecord)
        return record

    @property
    def _age(self) -> float:
        """Of the job, in seconds."""
        return self._clock.now() - self._record.created

    @property
    def _over(self) -> bool:
        return self._copies.over or self._leaving or (self._pausing and self._copies.resting)

    @property
    def _too_few(self) -> bool:
        return len(self._there) < self._copies.needed

    @property
    def _there(self) -> set[int]:
        """Ranks as the record has them: the crew misses a peer before this driver has dealt with what it said last."""
        return {peer.rank for peer in self._record.peers if not peer.lost}

    def _tell(self, rank: int, message: ToWorkerRun) -> None:
        self._answers.asked(rank, self._clock.monotonic())
        self._settlement.crew.tell(rank, pack_frame(message))

    def _name(self, rank: int) -> str:
        return self._settlement.crew.leases[rank].name


_Fact = tuple[int, CopyStarted | CopyExited | NoCopy | OutputsSent | OwnersMessage | str] | SettingsError | None
