"""The driver of one command on N peers: carries out what `copies.CopyScheduler` decides, and keeps what comes home.

One task alone moves the scheduler on, by one fact after the other; bytes of files go past it to the disk, and no more
is read of a peer while its last part is written.
"""

from __future__ import annotations

import asyncio
import contextlib

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.fact_inbox import Fact, OwnerSaid, PeerCame, PeerGone, WorkerSaid
from axonp2p.client.run.peers_at_work import PeersAtWork
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.errors import AxonError
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import HandBack, WorkerPaused, WorkerResumed
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
from axonp2p.kinds.run.result_keeper import ResultKeeper
from axonp2p.kinds.run.section import RunJob, order_for
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, Frame

MOST_WAITING = 64
"""Words of one peer that wait for this driver: one that says more breaks the protocol."""

_Word = CopyStarted | CopyExited | NoCopy | OutputsSent


class RunDriver:
    """`client.run.driver.Driver`."""

    def __init__(self, context: JobContext) -> None:
        assert isinstance(context.spec, RunJob)
        self._context = context
        self._need, self._section = context.spec.need, context.spec.run
        self._journal = context.journal
        self._clock = context.means.clock
        self._copies = CopyScheduler(CopiesPlan(self._section.copies))
        self._peers: PeersAtWork[_Word] = PeersAtWork(context, self._opened, MOST_WAITING)
        self._started: dict[int, tuple[int, int]] = {}
        """Index and attempt of the copy that each member said it has begun."""
        self._answers = AnswersDue()
        self._ends = CopyEnds(self._need.cores)
        self._pay = CopyPay(self._journal)
        self._keeper = ResultKeeper(self._journal, self._section, self._ends, self._pay)

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
        self._peers.work_for_us(crew)
        async with self._context.replacing(crew):
            while not self._over:
                if self._peers.too_few(self._copies.needed):
                    return False
                if self._peers.may_begin():
                    await self._carry_out(self._copies.begin(self._clock.monotonic()))
                await self._hear()
        return True

    # --- what is heard ---

    async def _opened(self, rank: int, frame: Frame) -> _Word | None:
        """`fact_inbox.OpenWord`."""
        message: FromWorkerRun = decode(frame.header, FromWorkerRun, HEADER_LIMIT)
        match message:
            case OutputPart() | OutputFile():
                if await self._keeper.heard(rank, message, frame.payload):
                    self._answers.came(rank, self._clock.monotonic(), len(frame.payload))
                return None
            case OutputsSent():
                return message if await self._keeper.heard(rank, message, b"") else None
            case _:
                return message

    async def _hear(self) -> None:
        """Wait for the next fact, or for the time at which something is due, and do what follows."""
        fact = await self._peers.next([self._pay.due, self._copies.next_deadline(), self._answers.next_deadline()])
        await self._carry_out(await self._take(fact))
        now = self._clock.monotonic()
        await self._carry_out(self._copies.due(now))
        for rank, reason in self._answers.late(now) if self._peers.idle else ():
            await self._carry_out(await self._gone(rank, reason, now))
        if self._clock.monotonic() >= self._pay.due:
            self._pay.pay(self._settlement, self._clock.monotonic())

    async def _take(self, fact: Fact[_Word] | None) -> list[CopyAction]:
        now = self._clock.monotonic()
        match fact:
            case PeerCame(rank):
                self._tell(rank, ReportCopy())
            case PeerGone(rank, reason):
                return await self._gone(rank, reason, now)
            case WorkerSaid(rank, word):
                return await self._word(rank, word, now)
            case OwnerSaid(rank, WorkerPaused()):
                self._answers.paused(rank, now)
                return self._copies.paused(rank, now)
            case OwnerSaid(rank, WorkerResumed()):
                self._answers.resumed(rank, now)
                return self._copies.resumed(rank, now)
            case OwnerSaid(rank, HandBack()):
                return self._copies.leaves(rank, now)
            case None if self._peers.pausing:
                self._copies.hold()
        return []

    async def _word(self, rank: int, message: _Word, now: float) -> list[CopyAction]:
        actions: list[CopyAction] = []
        if isinstance(message, OutputsSent):
            await self._keep(rank)
            return actions
        about = None if isinstance(message, NoCopy) else (message.index, message.attempt)
        reported = rank in self._peers.reported
        if isinstance(message, CopyStarted) and self._started.get(rank) == about:
            return actions
        if reported and about != self._copies.runs_at(rank):
            return actions  # no answer to anything, so it buys no time
        if not self._keeper.expects(rank):
            self._answers.answered(rank)
        if isinstance(message, CopyStarted):
            self._started[rank] = (message.index, message.attempt)
            if self._section.timeout:  # which its worker may not mind
                self._answers.asked(rank, now, self._section.timeout + ANSWER_S)
        if not reported:
            self._peers.reported.add(rank)
            actions += self._copies.joined(rank, now, about)
        if isinstance(message, CopyExited) and self._copies.runs_at(rank) == about:
            believed = self._ends.ended(rank, message, now, self._age)
            self._journal.tell(event_of(believed, self._peers.name(rank)))
            told = message.ended == "order"
            actions += self._copies.exited(rank, message.index, message.attempt, now, good=message.good, told=told)
        return actions

    async def _gone(self, rank: int, reason: str, now: float) -> list[CopyAction]:
        if self._pay.owes(rank):  # while it may still sign
            self._pay.pay(self._settlement, now)
            await self._journal.disk.finished()
        await self._keeper.drop(rank)
        self._started.pop(rank, None)
        self._answers.gone(rank)
        limit = self._peers.dismiss(rank, reason)
        if runs := self._copies.runs_at(rank):
            self._ends.came_to_nothing(runs[0], reason)
            if limit:
                self._ends.ended(rank, over_its_limit(*runs, limit), now, self._age)
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
                    await self._counted(await self._keeper.fail(action, self._peers.name(action.rank)))

    def _start(self, action: StartCopy) -> None:
        rank, index, attempt = action.rank, action.index, action.attempt
        name = self._peers.name(rank)
        self._tell(rank, order_for(self._journal.record.id, self._section, index, attempt))
        self._ends.begun(rank, index, attempt, self._clock.monotonic())
        if action.cause == "first":
            self._journal.tell(CopyBegun(index=index, attempt=attempt, peer=name))
        elif action.cause == "again":
            reason = self._ends.why_again(index)
            self._journal.tell(CopyRetried(index=index, attempt=attempt, peer=name, reason=reason))
        else:
            slow = next(
                (other for other, one in self._copies.under_way.items() if one == index and other != rank), None
            )
            slow_peer = "" if slow is None else self._peers.name(slow)
            self._journal.tell(SpeculativeCopy(index=index, attempt=attempt, peer=name, slow_peer=slow_peer))

    async def _fetch(self, result: KeepResult) -> None:
        if order := await self._keeper.fetch(result):
            self._tell(result.rank, order)
            self._answers.asked_for_files(result.rank, self._clock.monotonic())
        else:
            await self._keep(result.rank)

    async def _keep(self, rank: int) -> None:
        if kept := await self._keeper.keep(rank, self._settlement):
            for one in (rank, *await self._keeper.drop_others(kept.index)):
                self._answers.answered(one)
            await self._counted(kept)

    async def _counted(self, result: OutputsKept | IndexFailed) -> None:
        self._journal.tell(result)
        await self._carry_out(self._copies.kept(result.index, self._clock.monotonic()))

    # --- the end ---

    async def _close(self) -> None:
        await self._keeper.drop_all()
        self._pay.pay(self._settlement, self._clock.monotonic())

    async def _end(self) -> Event:
        await self._close()
        receipts = await self._settlement.settle()
        if paused := self._peers.paused_event(over=self._copies.over):
            return paused
        self._journal.enter(JobState.FINISHED)
        await self._journal.disk.finished()
        failed = await asyncio.to_thread(self._keeper.failed_indices)
        return finished_event(self._journal, failed, **self._peers.of_this_life(receipts))

    # --- small questions ---

    @property
    def _age(self) -> float:
        """Of the job, in seconds."""
        return self._clock.now() - self._journal.record.created

    @property
    def _over(self) -> bool:
        return self._copies.over or self._peers.leaving or (self._peers.pausing and self._copies.resting)

    def _tell(self, rank: int, message: ToWorkerRun) -> None:
        self._answers.asked(rank, self._clock.monotonic())
        self._peers.tell(rank, message)
