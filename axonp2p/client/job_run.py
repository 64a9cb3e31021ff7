"""A job from its first question to its last receipt: the order of things, and the tidying up whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from axonp2p.client.account import JobAccount
from axonp2p.client.crew import LeasedCrew
from axonp2p.client.events import (
    BundleSent,
    Event,
    JobCancelled,
    JobEndedBadly,
    JobLeft,
    Reserved,
)
from axonp2p.client.files import not_writable
from axonp2p.client.hiring import Hiring, Means, Wish
from axonp2p.client.job_end import JobEnd
from axonp2p.client.job_store import ErrorRecord, PeerRecord
from axonp2p.client.lease import Lease
from axonp2p.client.narrator import Narrator
from axonp2p.client.receipts import ReceiptBook, ReceiptOffice
from axonp2p.client.replacements import Replacements
from axonp2p.client.sending import Sending
from axonp2p.client.training_plan import lines_of, plan_of, rtts_among
from axonp2p.errors import AxonError, JobFailed
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec, need_of
from axonp2p.logs import get_logger
from axonp2p.peers.capability import read_need
from axonp2p.training.coordinator import Coordinator
from axonp2p.training.round import Rounds

log = get_logger(__name__)

RECEIPTS_S = 10.0
"""How long the last receipts may take at the end of a job."""

REFILL_S = 60.0
"""For so long others are hired, or the same ones once they are back, when too few have taken the bundle."""


class JobRun:
    """One life of a job: from submit, or resume, to its end. `run()` is called once."""

    def __init__(self, means: Means, account: JobAccount, spec: JobSpec, bundle: Bundle) -> None:
        self._means = means
        self._account = account
        self._spec = spec
        self._sending = Sending(bundle, means.clock, account.tell)
        self._began = means.clock.monotonic()
        self._coordinator: Coordinator | None = None
        self._task: asyncio.Task[None] | None = None
        self._leaving = False
        self._cancelling = False

    async def run(self) -> None:
        """To the end; returns when it is finished, left or cancelled. Raises the error that it failed with."""
        self._task = asyncio.current_task()
        folder = self._account.folder
        with folder.held():
            try:
                last = await self._live()
            except asyncio.CancelledError:
                last = self._stopped()
            except AxonError as error:
                self._failed(error)
                raise
            except OSError as error:
                failure = not_writable(folder.path, error)
                self._failed(failure)
                raise failure from error
            except Exception as error:  # the edge of a supervised task: the job must not stay "training" for ever
                self._failed(AxonError(f"a mistake in axon itself: {error!r}"))
                raise
            self._account.tell(last)

    def leave(self) -> None:
        """Stop soon, keeping the accepted rounds. Without effect once all rounds are trained."""
        if self._leaving or self._cancelling:
            return
        self._leaving = True
        if self._coordinator:
            self._coordinator.leave()
        elif self._task:
            self._task.cancel()

    def cancel(self) -> None:
        """Stop now, keeping nothing that is not kept already."""
        if self._cancelling:
            return
        self._cancelling = True
        if self._task:
            # Once only: a second one would interrupt the giving back of leases.
            self._task.cancel()

    # --- the life of a job ---

    async def _live(self) -> Event:
        if self._leaving or self._cancelling:  # before it had begun
            return self._stopped()
        record = self._account.record
        self._account.folder.drop_metrics_from(record.kept_round)
        self._account.enter(JobState.FINDING, round=record.kept_round, error=None)
        book = ReceiptBook(self._means.key, record.id)
        async with ReceiptOffice(book, self._means.table.trackers, self._means.clock) as office:
            hiring = Hiring(self._means, self._wish(), self._tell)
            async with _ended(hiring.hired):
                await hiring.hire()
                self._join(hiring)
                crew = LeasedCrew(hiring.hired, self._account.folder, office)
                try:
                    await self._send_bundle(crew)
                    return await self._train(crew, office)
                finally:
                    await crew.release_all()

    def _wish(self) -> Wish:
        need = self._spec.need
        return Wish(
            job=self._account.record.id,
            need=read_need(need_of(self._spec)),
            wanted=need.peers,
            at_least=need.min_peers,
            max_rtt_s=need.max_rtt / 1000,
        )

    def _tell(self, event: Event) -> None:
        if isinstance(event, Reserved):
            self._account.enter(JobState.RESERVING)
        self._account.tell(event)

    def _join(self, hiring: Hiring) -> None:
        peers = [
            PeerRecord(
                name=lease.name,
                peer=lease.row.peer,
                rank=rank,
                reservation=lease.promise.uuid,
                rtt_s=hiring.distances[lease.row.peer].seconds or 0.0,
            )
            for rank, lease in enumerate(hiring.hired)
        ]
        reservations = list(dict.fromkeys(peer.reservation for peer in peers))
        tracker = next((lease.promise.tracker for lease in hiring.hired if lease.promise.tracker), "")
        self._account.joined(peers, reservations, tracker)
        if among := rtts_among(hiring.hired):
            self._account.tell(among)

    async def _send_bundle(self, crew: LeasedCrew) -> None:
        self._account.enter(JobState.SENDING)
        began = self._means.clock.monotonic()
        crew.introduce()
        answers = await asyncio.gather(*(self._sending.deliver(rank, lease) for rank, lease in crew.leases.items()))
        for rank, reason in enumerate(answers):
            if reason:
                crew.dismiss(rank)
                self._account.lost(rank, crew.leases[rank].name, reason, len(crew.present))
        needed = self._spec.need.min_peers
        if len(crew.present) < needed:
            await self._replacements(crew, join=_nobody_waits).fill(needed, REFILL_S)
        names = list(crew.present.values())
        if len(names) < needed:
            reasons = "; ".join(reason for reason in answers if reason)
            raise JobFailed(
                f"only {len(names)} of at least {needed} peers took the bundle", cause=reasons, fix="submit again"
            )
        seconds = self._means.clock.monotonic() - began
        sent, passed_on = self._sending.sent_bytes, self._sending.member_bytes
        self._account.tell(BundleSent(peers=names, bytes=sent, member_bytes=passed_on, seconds=seconds))

    async def _train(self, crew: LeasedCrew, office: ReceiptOffice) -> Event:
        record, spec = self._account.record, self._spec
        plan = plan_of(record, spec)
        narrator = Narrator(self._account, crew, office.book, plan, self._means.clock)
        rounds = Rounds(plan, crew.present, min_peers=spec.need.min_peers, lines=lines_of(crew.leases))
        coordinator = Coordinator(
            rounds,
            crew,
            self._means.clock,
            narrator.show,
            start_state=self._account.folder.state if record.kept_state else None,
        )
        crew.work_for(coordinator)
        self._account.enter(JobState.TRAINING)
        self._coordinator = coordinator
        if self._leaving:
            coordinator.leave()
        end = JobEnd(self._account, coordinator, crew, office, narrator)
        try:
            async with self._replacing(crew, coordinator):
                standing = await coordinator.train()
        except JobFailed as error:
            raise await end.failed(error) from error
        if not standing.trained:
            return await end.left()
        return await end.finished(self._began, self._means.clock)

    @contextlib.asynccontextmanager
    async def _replacing(self, crew: LeasedCrew, coordinator: Coordinator) -> AsyncIterator[None]:
        """Meanwhile peers are hired in place of those that go."""
        replacements = self._replacements(crew, coordinator.join)
        task = asyncio.create_task(replacements.run(), name="replacements")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _replacements(self, crew: LeasedCrew, join: Callable[[int, str], Awaitable[None]]) -> Replacements:
        return Replacements(self._means, self._wish(), crew, self._account, deliver=self._sending.deliver, join=join)

    # --- ends without training ---

    def _stopped(self) -> Event:
        if self._leaving and not self._cancelling:
            return self._left()
        self._account.enter(JobState.CANCELLED)
        return JobCancelled(job=self._account.record.id)

    def _left(self) -> Event:
        record = self._account.record
        self._account.enter(JobState.LEFT, round=record.kept_round)
        return JobLeft(job=record.id, folder=str(self._account.folder.path), round=record.kept_round)

    def _failed(self, error: AxonError) -> None:
        code, message, cause, fix = error.code, error.message, error.cause, error.fix
        shown = ErrorRecord(code=code, message=message, cause=cause, fix=fix)
        job = self._account.record.id
        with contextlib.suppress(OSError):  # the disk may be what failed
            self._account.enter(JobState.FAILED, error=shown)
            self._account.tell(JobEndedBadly(job=job, code=code, message=message, cause=cause, fix=fix))


async def _nobody_waits(rank: int, name: str) -> None:
    """The training has not begun: who has the bundle by then takes part."""


@contextlib.asynccontextmanager
async def _ended(leases: list[Lease]) -> AsyncIterator[None]:
    """Whatever happens, no lease outlives this."""
    try:
        yield
    finally:
        await asyncio.gather(*(lease.end() for lease in leases))
