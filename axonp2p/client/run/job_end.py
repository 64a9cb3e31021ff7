"""How a job ends well, or keeps what was done: weights, state, logs and receipts, fetched while peers are there."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

from axonp2p.client.events.events import Event, JobFinished, JobLeft, ReceiptsMissing
from axonp2p.client.ledger.convictions import Convictions
from axonp2p.client.ledger.receipts import ReceiptOffice
from axonp2p.client.run.progress import JobPace
from axonp2p.client.run.settlement import Tally
from axonp2p.client.storage.books import RoundCommits
from axonp2p.client.storage.metrics_file import MetricsFile
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, TaskMistake
from axonp2p.files import put_in_place
from axonp2p.jobs.lifecycle import JobState
from axonp2p.logs import get_logger
from axonp2p.training.coordinator.coordinator import Coordinator
from axonp2p.training.coordinator.crew import TrainingResult

KEEP_S = 600.0
"""How long the last state's way to this disk may take when a job is left."""
RECEIPTS_S = 10.0
"""How long the last receipts may take at the end of a job."""

log = get_logger(__name__)


class JobEnd:
    """The ends that a job's training can come to. One of them is called, once, while the leases still hold."""

    def __init__(
        self,
        books: RoundCommits,
        coordinator: Coordinator,
        tally: Tally,
        office: ReceiptOffice,
        convictions: Convictions,
        pace: JobPace,
    ) -> None:
        self._books = books
        self._account = books.account
        self._coordinator = coordinator
        self._tally = tally
        self._crew = tally.crew
        self._office = office
        self._convictions = convictions
        self._pace = pace

    async def finished(self, began: float, clock: Clock) -> Event:
        """All rounds are trained: fetch the weights. Raises `JobFailed` when no peer can give them.

        `began` is when this life of the job did, in monotonic seconds.
        """
        folder = self._account.folder
        arriving = folder.path / ".model.part"
        await self._coordinator.keep_last()
        settling = asyncio.create_task(self._settle())
        try:
            standing = self._standing()
            sha256 = await self._coordinator.fetch_model(standing, arriving, await self._accepted(standing))
            await asyncio.to_thread(put_in_place, arriving, folder.model)
            kept = await settling
        finally:
            arriving.unlink(missing_ok=True)
            settling.cancel()
        self._account.enter(JobState.FINISHED, model_sha256=sha256.hex(), kept_state="")
        await self._account.disk.finished()
        self._books.checkpoints.remove_all()
        record, now = self._account.record, clock.monotonic()
        return JobFinished(
            job=record.id,
            folder=str(folder.path),
            rounds=record.round,
            loss=record.loss or 0.0,
            metrics=record.metrics,
            samples=sum(int(row["samples"]) for row in MetricsFile(folder.metrics).rows()),
            seconds=now - began,
            first_step_s=(self._pace.began or now) - began,
            wire_bytes=record.wire_bytes,
            credits=record.credits,
            receipts=kept,
            peers=list(self._crew.present.values()),
            lost=self._account.names_lost,
        )

    async def _accepted(self, standing: TrainingResult) -> Callable[[Path], bool] | None:
        """Whether a model's file holds the accepted state, where that is on this disk; None: it is not."""
        kept = self._books.checkpoints.find(standing.round, standing.state) if standing.state else None
        if kept is None or not await asyncio.to_thread(kept.fits):
            return None
        from axonp2p.training.state_transfer.model_file import holds  # numpy is slow to load, and of use only here

        return partial(holds, state=kept.path, model=self._coordinator.model)

    async def left(self) -> Event:
        """The client goes, to come back, or owners took too many machines back: keep what was done."""
        await self._coordinator.keep_last(KEEP_S)
        await self._settle()
        record = self._account.record
        self._account.enter(JobState.LEFT, round=record.kept_round)
        reason = self._coordinator.standing.left_because
        return JobLeft(job=record.id, folder=str(self._account.folder.path), round=record.kept_round, reason=reason)

    async def failed(self, error: AxonError) -> AxonError:
        """Training was given up; the error to tell. Too few peers may be left, but those hold what was done."""
        if not isinstance(error, TaskMistake):
            await self._coordinator.keep_last(KEEP_S)
        await self._settle()
        record = self._account.record
        if not record.kept_round or isinstance(error, TaskMistake):
            return error
        fix = f"axon resume {record.id}      (goes on after round {record.kept_round})"
        return type(error)(error.message, cause=error.cause, fix=fix)

    async def _settle(self) -> int:
        """Fetch logs and wait for the last receipts and convictions; how many receipts are kept by a tracker."""
        settled, _, _ = await asyncio.gather(
            self._office.settle(RECEIPTS_S), self._convictions.settle(RECEIPTS_S), self._crew.keep_logs()
        )
        if settled.unsigned or settled.not_taken:
            missing = ReceiptsMissing(unsigned=settled.unsigned, not_taken=settled.not_taken, reason=settled.reason)
            self._account.tell(missing)
        self._account.change(
            wire_bytes=self._tally.wire_bytes,
            credits=self._tally.credits(),
            receipts=self._tally.receipts.keep(),
        )
        return settled.kept

    def _standing(self) -> TrainingResult:
        """As the coordinator sees it, without those that have gone since."""
        standing, present = self._coordinator.standing, self._crew.present
        members = [rank for rank in standing.members if rank in present]
        return dataclasses.replace(standing, members=members)
