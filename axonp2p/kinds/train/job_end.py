"""How a job ends well, or keeps what was done: weights, state, logs and receipts, fetched while peers are there."""

from __future__ import annotations

import asyncio
from typing import Any

from axonp2p.client.events.events import Event, JobPaused
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, JobFailed, LimitReached, TaskMistake
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.kept.kept_end import enter_finished, finished_event, write_files
from axonp2p.kinds.train.kept.model_files import keep_layout
from axonp2p.kinds.train.progress import JobPace
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.training.coordinator.coordinator import Coordinator

KEEP_S = 600.0
"""How long the last state's way to this disk may take when a job is left."""


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
        await self._coordinator.keep_last()
        keep_layout(self._journal, self._coordinator.file_layout, self._coordinator.model)
        await self._journal.disk.finished()
        settling = asyncio.create_task(self._settlement.settle())
        try:
            files = await asyncio.to_thread(self._write_files)
            kept = await settling
        finally:
            settling.cancel()
        enter_finished(self._books, files)
        await self._journal.disk.finished()
        self._books.checkpoints.remove_all()
        now = clock.monotonic()
        return finished_event(
            self._books,
            seconds=now - began,
            first_step_s=(self._pace.began or now) - began,
            receipts=kept,
            peers=list(self._settlement.crew.present.values()),
            lost=self._journal.names_lost,
        )

    def _write_files(self) -> dict[str, Any]:
        """Write the weights of the accepted state, and of the best one, to their places. Blocks."""
        result = self._coordinator.result
        kept = self._books.checkpoints.find(result.round, result.state) if result.state else None
        if kept is None or not kept.fits():
            raise JobFailed(
                "the state after the last round is not on this disk",
                cause="every peer that held it has gone" if kept is None else f"{kept.path.name} is damaged",
                fix=f"axon resume {self._journal.record.id}",
            )
        return write_files(self._books, kept)

    async def left(self) -> Event:
        """The client goes, to come back, or owners took too many machines back: keep what was done."""
        await self._coordinator.keep_last(KEEP_S)
        await self._settlement.settle()
        record = self._books.record
        self._journal.enter(JobState.PAUSED, round=record.kept_round)
        reason = self._coordinator.result.left_because
        return JobPaused(job=record.id, folder=str(self._journal.folder.path), round=record.kept_round, reason=reason)

    async def failed(self, error: AxonError) -> AxonError:
        """Training was given up; the error to tell. Too few peers may be left, but those hold what was done."""
        if not isinstance(error, TaskMistake):
            await self._coordinator.keep_last(KEEP_S)
        await self._settlement.settle()
        record = self._books.record
        if not record.kept_round or isinstance(error, TaskMistake | LimitReached):
            return error
        fix = f"axon resume {record.id}      (continues after round {record.kept_round})"
        return type(error)(error.message, cause=error.cause, fix=fix)
