"""The peers of a job whose driver has a queue: who is there, when the work begins, and how it ends.

Not for kind "train": the rounds of its coordinator take the place of the queue, with an inbox of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Generic

from axonp2p.client.events.events import JobPaused
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.fact_inbox import Fact, FactInbox, OpenWord, OwnerSaid, PeerCame, PeerGone, Word
from axonp2p.errors import AxonError, JobFailed, SettingsError
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.messages import WorkerPaused, WorkerResumed
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import pack_frame

REPORT_S = 5.0
"""For so long peers may take to say what an earlier life gave them, before their work is begun at others."""


class PeersAtWork(Generic[Word]):
    """Of one life of the client. `work_for_us` is called each time that the driver runs."""

    crew: LeasedCrew

    def __init__(self, context: JobContext, opened: OpenWord[Word], most_waiting: int) -> None:
        """The last two as `FactInbox` has them."""
        self._context = context
        self._journal = context.journal
        self._clock = context.means.clock
        self._inbox: FactInbox[Word] = FactInbox(opened, most_waiting)
        self.reported: set[int] = set()
        """Ranks that said what they have."""
        self.paused: set[int] = set()
        """Ranks whose owners need the machine."""
        self.begun = False
        """Whether nobody's report is waited for any more."""
        self._begin_by = 0.0
        self.pausing = self.stopping = self.leaving = False
        """As the driver was told."""

    # --- what the driver is told, and tells ---

    def pause(self) -> None:
        """As `Driver` has it."""
        self.pausing = True
        self.wake()

    def stop(self) -> None:
        """As `Driver` has it."""
        self.stopping = True
        self.pause()

    def leave(self) -> None:
        """As `Driver` has it."""
        self.leaving = True
        self.wake()

    def wake(self, error: BaseException | None = None) -> None:
        """Have `next` return, or raise that error."""
        self._inbox.put(error)

    def waker(self) -> Callable[[], None]:
        """`wake` for other threads, for as long as the running loop is not closed."""
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.wake)

        return wake

    def not_brought(self, rank: int, error: AxonError) -> None:
        """A peer cannot have a file: a fault of this disk ends the job, all else the peer's part in it."""
        if isinstance(error, SettingsError | JobFailed):
            self.wake(error)
        else:
            self.must_go(rank, f"it did not take what its work needs: {error.message}")

    def must_go(self, rank: int, reason: str) -> None:
        """A peer's part in the job is over, once what it said until now is dealt with."""
        self._inbox.put(PeerGone(rank, reason))

    def tell(self, rank: int, message: Message) -> None:
        """Say this to a peer's worker."""
        self.crew.tell(rank, pack_frame(message))

    # --- how the work goes ---

    def work_for_us(self, crew: LeasedCrew, report_s: float = REPORT_S) -> None:
        """The crew is there. Peers that have not reported may take so many seconds for it."""
        self.crew = crew
        crew.work_for(self._inbox)
        for rank in crew.present.keys() - self.reported:
            self._inbox.put(PeerCame(rank))
        self._begin_by = self._clock.monotonic() + report_s

    async def next(self, deadlines: Iterable[float | None]) -> Fact[Word] | None:
        """The next fact about a peer that is there; None: there is none until the first deadline, or `wake` was called.

        An owner's word is told and kept before it is returned. Raises what `wake` was given.
        """
        moments = [moment for moment in deadlines if moment is not None]
        if not self.begun:
            moments.append(self._begin_by)
        fact = await self._inbox.next(min(moments) - self._clock.monotonic())
        if fact is None or fact.rank not in self.there:
            return None
        match fact:
            case OwnerSaid(rank, WorkerPaused(reason=reason)):
                self.paused.add(rank)
                self._journal.paused(rank, self.name(rank), reason)
            case OwnerSaid(rank, WorkerResumed()):
                self.paused.discard(rank)
                self._journal.resumed(rank, self.name(rank))
        return fact

    def may_begin(self) -> bool:
        """Whether the work begins now: true once, when all have reported or have had their time for it."""
        if self.begun or not (self.there <= self.reported or self._clock.monotonic() >= self._begin_by):
            return False
        self.begun = True
        return not self.pausing

    def too_few(self, needed: int) -> bool:
        """Whether others have to be found before it goes on. Raises `JobFailed` where nobody looks for others."""
        if len(self.there) >= needed or not self.idle:
            return False
        if self._context.may_wait(self.crew):
            return True
        raise JobFailed(
            "no peers are left" if needed == 1 else f"only {len(self.there)} of at least {needed} peers are left",
            cause="; ".join(self._journal.names_lost),
            fix=f"axon resume {self._journal.record.id}",
        )

    def dismiss(self, rank: int, reason: str) -> str:
        """A peer is out of the job; the limit of the sandbox that it went over, or empty."""
        self.reported.discard(rank)
        self.paused.discard(rank)
        limit = self.crew.leases[rank].limit
        self.crew.dismiss(rank, reason)
        self._journal.lost(rank, self.name(rank), reason, len(self.crew.present))
        return limit

    # --- the end ---

    def paused_event(self, *, over: bool, may_stop: bool = True) -> JobPaused | None:
        """The job is paused with what is done, unless that is all (`over`), or its owner wants no more: None.

        `may_stop`: whether it has a result before its end.
        """
        record = self._journal.record
        if over or (may_stop and self.stopping and not self.leaving and record.done):
            return None
        self._journal.enter(JobState.PAUSED)
        return JobPaused(job=record.id, folder=str(self._journal.folder.path), round=record.done)

    def of_this_life(self, receipts: int) -> dict[str, Any]:
        """The fields of it that `JobJournal.finished_event` is told."""
        return {
            "seconds": self._clock.monotonic() - self._context.began,
            "receipts": receipts,
            "peers": list(self.crew.present.values()),
            "lost": self._journal.names_lost,
        }

    # --- small questions ---

    @property
    def idle(self) -> bool:
        """Whether no fact waits."""
        return self._inbox.empty

    @property
    def there(self) -> set[int]:
        """Ranks as the record has them: the crew misses a peer before the driver has dealt with what it said last."""
        return {peer.rank for peer in self._journal.record.peers if not peer.lost}

    def name(self, rank: int) -> str:
        """Of a peer, as people see it."""
        return self.crew.leases[rank].name

    def key(self, rank: int) -> str:
        """Of a peer, whichever its rank."""
        key: str = self.crew.leases[rank].row.peer
        return key
