"""The driver of a training: a coordinator for each crew, rounds kept and paid, and what people see of it."""

from __future__ import annotations

import asyncio
from functools import partial

from axonp2p.client.events.events import Event
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.driver import JobContext
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_record import NumberedReceipts
from axonp2p.errors import JobFailed
from axonp2p.kinds.train.checked_work import CheckedWork
from axonp2p.kinds.train.job_end import KEEP_S, JobEnd
from axonp2p.kinds.train.record import AheadRound
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.kinds.train.section import TrainJob
from axonp2p.kinds.train.settlement import RoundSettlement, work_of
from axonp2p.kinds.train.task_files import TaskFiles
from axonp2p.kinds.train.training_events import TrainingEvents
from axonp2p.kinds.train.training_plan import lines_of, plan_of
from axonp2p.supervision import keep_up
from axonp2p.training.coordinator.coordinator import Coordinator
from axonp2p.training.coordinator.crew import Sight
from axonp2p.training.round_messages import MemberReady
from axonp2p.training.rounds.machine import Rounds


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
        self._leaving = False

    def open(self, book: ReceiptBook) -> None:
        """`Driver`."""
        self._books.open(partial(self._pay, book))

    def pause(self) -> None:
        """`Driver`."""
        if self._coordinator:
            self._coordinator.pause()

    def leave(self) -> None:
        """`Driver`."""
        self._leaving = True
        if self._coordinator:
            self._coordinator.leave()

    def forget(self) -> None:
        """`Driver`."""
        self._journal.change(kept_round=0, kept_state="")
        self._journal.disk.do(self._books.checkpoints.remove_all)

    async def run(self, settlement: JobSettlement) -> Event | None:
        """`Driver`."""
        crew, spec, clock = settlement.crew, self._spec, self._context.means.clock
        plan = plan_of(self._books.record, spec)
        checked = CheckedWork(self._context.means, settlement, self._journal)
        crew.signed = checked.signed
        rounds_settled = RoundSettlement(self._books, settlement, plan, clock, checked)
        training_events = TrainingEvents(self._journal, crew, rounds_settled.pace, clock)
        files = TaskFiles(self._journal, crew, clock)

        def heard(sight: Sight) -> None:
            rounds_settled.heard(sight)
            training_events.show(sight)
            if isinstance(sight, MemberReady):
                files.built(sight.rank)
            files.ask_those_due()

        rounds = Rounds(
            plan,
            crew.present,
            min_peers=spec.need.min_peers,
            lines=lines_of(crew.leases),
            checks=checked.settings(spec),
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
        if self._leaving:
            coordinator.leave()
        end = JobEnd(self._books, coordinator, settlement, rounds_settled.pace)
        starting = asyncio.create_task(
            keep_up("telling who starts", training_events.tell_who_starts), name="starting peers"
        )
        try:
            return await self._to_its_end(coordinator, settlement, end, files)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await coordinator.close()

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

    def _pay(self, book: ReceiptBook, ahead: AheadRound) -> list[NumberedReceipts]:
        """Receipts for a round of the last life of the job."""
        there = {peer.rank: peer for peer in self._journal.record.peers if not peer.lost}
        for rank, report in ahead.reports.items():
            if peer := there.get(rank):
                book.write(peer.reservation, peer.peer, work_of(report), self._context.means.clock.now())
        return book.keep()

    def _start_state(self) -> bytes:
        record = self._books.record
        kept = self._books.checkpoints.find(record.kept_round, bytes.fromhex(record.kept_state))
        if kept is None:
            raise JobFailed("the state to go on from is not there any more", fix=f"axon resume {record.id}")
        return kept.read()
