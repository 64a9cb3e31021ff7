"""The driver of a training: a coordinator for each crew, rounds kept and paid, and what people see of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.errors import JobFailed
from axonp2p.kinds.train.checked_work import CheckedWork
from axonp2p.kinds.train.job_end import KEEP_S, JobEnd
from axonp2p.kinds.train.kept.best_round import EarlyStopping
from axonp2p.kinds.train.kept.model_files import keep_layout
from axonp2p.kinds.train.progress import summarise
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.kinds.train.section import TrainJob
from axonp2p.kinds.train.settlement import RoundSettlement, paid_ahead
from axonp2p.kinds.train.task_files import TaskFiles
from axonp2p.kinds.train.training_events import TrainingEvents
from axonp2p.kinds.train.training_plan import lines_of, plan_of
from axonp2p.supervision import cancel_and_wait, keep_up
from axonp2p.training.coordinator.coordinator import Coordinator
from axonp2p.training.coordinator.crew import RoundBegun, Sight
from axonp2p.training.deadlines import Patience
from axonp2p.training.round_messages import GoesOn, MemberReady
from axonp2p.training.rounds.machine import Rounds
from axonp2p.verification.claims import RoundDone


class TrainDriver:
    """`client.run.driver.Driver`."""

    def __init__(self, context: JobContext) -> None:
        assert isinstance(context.spec, TrainJob)
        journal = context.journal
        self._context = context
        self._spec = context.spec
        self._journal = journal
        self._books = RoundCommits(journal, journal.folder.checkpoints(self._spec.train.keep_states))
        self._coordinator: Coordinator | None = None
        self._leaving = self._stopping = self._layout_kept = False

    def open(self, book: ReceiptBook) -> None:
        """`Driver`."""
        self._books.open(partial(paid_ahead, self._books, book, self._context.means.clock.now()))

    def pause(self) -> None:
        """`Driver`."""
        if self._coordinator:
            self._coordinator.pause()

    def stop(self) -> None:
        """`Driver`."""
        self._stopping = True
        if self._coordinator:
            self._coordinator.end_rounds()

    def leave(self) -> None:
        """`Driver`."""
        self._leaving = True
        if self._coordinator:
            self._coordinator.leave()

    async def run(self, settlement: JobSettlement) -> Event | None:
        """`Driver`."""
        crew, spec, clock = settlement.crew, self._spec, self._context.means.clock
        plan = plan_of(self._books.record, spec)
        checked = CheckedWork(self._context.means, settlement, self._journal)
        crew.signed = checked.signed
        rounds_settled = RoundSettlement(self._books, settlement, plan, clock, checked)
        record = self._books.record
        stopping = EarlyStopping(record.best_by, spec.train.stop_after, spec.train.checkpoint, record.best)
        training_events = TrainingEvents(self._journal, crew, rounds_settled.pace, clock, stopping)
        files = TaskFiles(self._journal, crew, clock)

        def heard(sight: Sight) -> None:
            self._heard(sight, stopping)
            rounds_settled.heard(sight)
            training_events.show(sight)
            if isinstance(sight, MemberReady):
                files.built(sight.rank)
            files.ask_those_due()

        rounds = Rounds(
            plan,
            crew.present,
            min_peers=spec.need.min_peers,
            patience=Patience(first_round_s=spec.train.step_timeout),
            lines=lines_of(crew.leases),
            checks=checked.settings(spec),
            are_enough=partial(_are_enough, stopping),
        )
        coordinator = self._coordinator = Coordinator(
            rounds,
            crew,
            clock,
            heard,
            written=self._journal.disk.finished,
            shelf=self._books.checkpoints,
            start_state=self._start_state,
            on_disk=plan.start_state,
        )
        coordinator.files = files
        crew.work_for(coordinator)
        if self._stopping:
            coordinator.end_rounds()
        if self._leaving:
            coordinator.leave()
        end = JobEnd(self._books, coordinator, settlement, rounds_settled.pace)
        starting = asyncio.create_task(
            keep_up("telling who starts", training_events.tell_who_starts), name="starting peers"
        )
        try:
            return await self._to_its_end(coordinator, settlement, end, files)
        finally:
            await cancel_and_wait(starting)
            await coordinator.close()

    def _heard(self, sight: Sight, stopping: EarlyStopping) -> None:
        ahead, coordinator = self._books.record.ahead, self._coordinator
        if isinstance(sight, GoesOn) and ahead and sight.rounds == ahead.finished.round + 1:
            stopping.accepted(sight.rounds, ahead.finished.loss, ahead.finished.metrics)
        if isinstance(sight, RoundBegun) and coordinator and not self._layout_kept:
            keep_layout(self._journal, coordinator.file_layout, coordinator.model)
            self._layout_kept = True

    async def _to_its_end(
        self, coordinator: Coordinator, settlement: JobSettlement, end: JobEnd, files: TaskFiles
    ) -> Event | None:
        try:
            async with self._context.replacing(settlement.crew):
                result = await coordinator.train()
        except JobFailed as error:
            await files.fetch_last()
            if not (coordinator.too_few and self._context.may_wait(settlement.crew)):
                raise await end.failed(error) from error
            await coordinator.keep_last(KEEP_S)
            return None
        await files.fetch_last()
        return await (end.finished(self._context.began, self._context.means.clock) if result.trained else end.left())

    def _start_state(self) -> bytes:
        record = self._books.record
        kept = self._books.checkpoints.find(record.kept_round, bytes.fromhex(record.kept_state))
        if kept is None:
            raise JobFailed("the state to continue from is not there any more", fix=f"axon resume {record.id}")
        return kept.read()


def _are_enough(stopping: EarlyStopping, round: int, reports: Mapping[int, RoundDone]) -> bool:
    told = summarise({str(rank): report for rank, report in reports.items()})
    return stopping.accepted(round + 1, told.loss, told.metrics)
