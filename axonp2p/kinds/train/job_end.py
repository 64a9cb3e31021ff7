"""How a job ends well, or keeps what was done: weights, state, logs and receipts, fetched while peers are there."""

from __future__ import annotations

import asyncio

from axonp2p.client.events.events import Event, JobFinished, JobLeft
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.checkpoints import Checkpoint
from axonp2p.clock import Clock
from axonp2p.disk_errors import not_writable
from axonp2p.errors import AxonError, JobFailed, LimitReached, TaskMistake
from axonp2p.files import replacing
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.metrics_file import MetricsFile
from axonp2p.kinds.train.progress import JobPace
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.logs import get_logger
from axonp2p.training.coordinator.coordinator import Coordinator

KEEP_S = 600.0
"""How long the last state's way to this disk may take when a job is left."""

log = get_logger(__name__)


class JobEnd:
    """The ends that a job's training can come to. One of them is called, once, while the leases still hold."""

    def __init__(
        self,
        books: RoundCommits,
        coordinator: Coordinator,
        settlement: JobSettlement,
        pace: JobPace,
    ) -> None:
        self._books = books
        self._journal = books.journal
        self._coordinator = coordinator
        self._settlement = settlement
        self._pace = pace

    async def finished(self, began: float, clock: Clock) -> Event:
        """All rounds are trained: fetch the last state and write its weights. Raises `JobFailed` without that state.

        `began` is when this life of the job did, in monotonic seconds.
        """
        folder = self._journal.folder
        await self._coordinator.keep_last()
        settling = asyncio.create_task(self._settlement.settle())
        try:
            sha256 = await asyncio.to_thread(self._write_model)
            kept = await settling
        finally:
            settling.cancel()
        self._journal.enter(JobState.FINISHED, model_sha256=sha256.hex(), kept_state="")
        await self._journal.disk.finished()
        self._books.checkpoints.remove_all()
        record, now = self._books.record, clock.monotonic()
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
            peers=list(self._settlement.crew.present.values()),
            lost=self._journal.names_lost,
        )

    def _write_model(self) -> bytes:
        """Write the weights of the accepted state to their place; the SHA-256 of their file. Blocks."""
        # numpy is slow to load, and of use only here
        from axonp2p.training.state_transfer.model_file import NOTHING, write_model

        coordinator, folder = self._coordinator, self._journal.folder
        result, model = coordinator.result, coordinator.model
        kept = self._books.checkpoints.find(result.round, result.state) if result.state else None
        if kept is None or not kept.fits():
            raise JobFailed(
                "the state after the last round is not on this disk",
                cause="every peer that held it has gone" if kept is None else f"{kept.path.name} is damaged",
                fix=f"axon resume {self._journal.record.id}",
            )
        frozen = self._frozen_of(kept) if model.frozen else NOTHING
        try:
            with replacing(folder.model, lasting=True) as file:
                return write_model(file, kept.path, coordinator.file_layout, model, frozen)
        except OSError as error:
            raise not_writable(folder.model, error) from error

    def _frozen_of(self, kept: Checkpoint) -> memoryview:
        """The frozen parameters that this state names. Raises `JobFailed` where they are not right."""
        found = self._books.checkpoints.frozen(self._coordinator.model.frozen_of(memoryview(kept.read())))
        if found is None or not found.fits():
            raise JobFailed(
                "the frozen parameters of the model are not on this disk",
                cause=f"{found.path.name} is damaged" if found else "their file is not there any more",
                fix=f"axon resume {self._journal.record.id}",
            )
        return found.file

    async def left(self) -> Event:
        """The client goes, to come back, or owners took too many machines back: keep what was done."""
        await self._coordinator.keep_last(KEEP_S)
        await self._settlement.settle()
        record = self._books.record
        self._journal.enter(JobState.LEFT, round=record.kept_round)
        reason = self._coordinator.result.left_because
        return JobLeft(job=record.id, folder=str(self._journal.folder.path), round=record.kept_round, reason=reason)

    async def failed(self, error: AxonError) -> AxonError:
        """Training was given up; the error to tell. Too few peers may be left, but those hold what was done."""
        if not isinstance(error, TaskMistake):
            await self._coordinator.keep_last(KEEP_S)
        await self._settlement.settle()
        record = self._books.record
        if not record.kept_round or isinstance(error, TaskMistake | LimitReached):
            return error
        fix = f"axon resume {record.id}      (goes on after round {record.kept_round})"
        return type(error)(error.message, cause=error.cause, fix=fix)
