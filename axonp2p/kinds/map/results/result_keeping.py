"""Results on their way to results.sqlite: what came while one transaction was written is the next one.

Only what is on the disk is told, paid and given to the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from axonp2p.client.events.event import Event
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.kinds.map.call_pay import CallPay
from axonp2p.kinds.map.calls.live_calls import LiveCalls
from axonp2p.kinds.map.record import MapRecord
from axonp2p.kinds.map.results.results_store import ItemOpinion, ItemResult, ResultsStore, WorkDone
from axonp2p.supervision import cancel_and_wait

MOST_WAITING = 64 * 2**20
"""Bytes of results that wait for the disk; while there are more, no more is read of peers."""
RECORD_EVERY_S = 1.0
"""job.json says how far the job is this often."""


@dataclass
class _Batch:
    results: list[ItemResult] = field(default_factory=list)
    values: list[tuple[int, Any]] = field(default_factory=list)
    work: list[WorkDone] = field(default_factory=list)
    events: list[Callable[[int, int], Event]] = field(default_factory=list)
    """Each is made of how many items are done, and how many of those failed."""
    opinions: list[ItemOpinion] = field(default_factory=list)
    size: int = 0


class ResultKeeping:
    """Of one life of the client. `tell` is called with None when all is on the disk, or why the disk takes nothing."""

    def __init__(
        self,
        journal: JobJournal,
        store: ResultsStore,
        pay: CallPay,
        live: LiveCalls | None,
        tell: Callable[[BaseException | None], None],
    ) -> None:
        self._journal = journal
        self._store = store
        self._pay = pay
        self._live = live
        self._tell = tell
        self.done = self.failed = 0
        """Items with a result on the disk, and errors among these."""
        self._batch = _Batch()
        self._writing = False
        self._changed = asyncio.Event()
        self._written = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._recorded_at = 0.0

    def begin(self) -> None:
        """Write what comes. Harmless when it has begun."""
        if self._task is None:
            record = self._journal.record
            assert isinstance(record, MapRecord)
            self.done, self.failed = record.results, record.failed
            self._task = asyncio.create_task(self._run(), name="results")
            self._task.add_done_callback(self._ended)

    def put(
        self,
        results: Sequence[ItemResult],
        values: Sequence[Any],
        work: Sequence[WorkDone] = (),
        events: Sequence[Callable[[int, int], Event]] = (),
        opinions: Sequence[ItemOpinion] = (),
    ) -> None:
        """These count once they are on the disk; opinions do not count, but are there for the next life too."""
        batch = self._batch
        batch.results += results
        batch.values += zip((one.item for one in results), values, strict=True)
        batch.work += work
        batch.events += events
        batch.opinions += opinions
        batch.size += sum(len(one.value) + 64 for one in results) + sum(len(one.value) + 64 for one in opinions)
        self._changed.set()

    @property
    def idle(self) -> bool:
        """Whether all is on the disk."""
        return not self._writing and not self._batch.results and not self._batch.opinions

    def took_back(self, outcomes: Sequence[str]) -> None:
        """Results with these outcomes are on the disk no more."""
        self.done -= len(outcomes)
        self.failed -= outcomes.count("error")

    async def room(self) -> None:
        """Wait while too much waits for the disk."""
        while self._batch.size > MOST_WAITING and not (self._task and self._task.done()):
            self._written.clear()
            await self._written.wait()

    async def finished(self) -> None:
        """Wait until all is on the disk, or none is taken."""
        while not self.idle and self._task and not self._task.done():
            self._written.clear()
            await self._written.wait()

    async def end(self) -> None:
        """Write no more."""
        if self._task:
            await cancel_and_wait(self._task)
        await asyncio.to_thread(self._store.close)

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            batch, self._batch = self._batch, _Batch()
            self._writing = True
            await asyncio.to_thread(self._store.keep, batch.results, batch.work, batch.opinions)
            self._count(batch)
            self._writing = False
            self._written.set()
            if self.idle:
                self._tell(None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._written.set()
        if not task.cancelled() and (error := task.exception()):
            self._tell(error)

    def _count(self, batch: _Batch) -> None:
        self._pay.accepted(batch.work)
        self.done += len(batch.results)
        self.failed += sum(one.outcome == "error" for one in batch.results)
        for event in batch.events:
            self._journal.tell(event(self.done, self.failed))
        if self._live:
            self._live.settle(batch.values)
        now = asyncio.get_running_loop().time()
        if now >= self._recorded_at + RECORD_EVERY_S:
            self.record(now)

    def record(self, now: float, **fields: Any) -> None:
        """Have job.json say how far the job is."""
        self._recorded_at = now
        self._journal.change(results=self.done, failed=self.failed, **fields)
