"""A job from its first question to its last receipt: the order of things, and the tidying up whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from axonp2p.client.account import JobAccount
from axonp2p.client.crew import LeasedCrew
from axonp2p.client.events import (
    BundleSent,
    Event,
    JobCancelled,
    JobEndedBadly,
    JobFinished,
    JobLeft,
    ReceiptsMissing,
    Reserved,
)
from axonp2p.client.hiring import Hiring, Wish
from axonp2p.client.job_store import ErrorRecord, PeerRecord, put_in_place, read_metrics
from axonp2p.client.lease import Lease
from axonp2p.client.narrator import Narrator
from axonp2p.client.receipts import ReceiptBook, ReceiptOffice
from axonp2p.client.sending import read_parts
from axonp2p.client.trackers import Trackers
from axonp2p.clock import Clock
from axonp2p.errors import AxonError, JobFailed, PeerMisbehaved, Refused, TaskMistake, Unreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.jobs.bundle import Bundle
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec, need_of
from axonp2p.peers.capability import read_need
from axonp2p.training.coordinator import Coordinator, Standing
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round import Rounds
from axonp2p.transport.address import PinnedAddress

RECEIPTS_S = 10.0
"""How long the last receipts may take at the end of a job."""


@dataclass(frozen=True)
class Means:
    """What every job of one client works with."""

    key: PrivateKey
    trackers: Sequence[PinnedAddress]
    clock: Clock


class JobRun:
    """One life of a job: from submit, or resume, to its end. `run()` is called once."""

    def __init__(self, means: Means, account: JobAccount, spec: JobSpec, bundle: Bundle) -> None:
        self._means = means
        self._account = account
        self._spec = spec
        self._bundle = bundle
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
        if self._cancelling or self._task is None:
            return
        self._cancelling = True
        # Once only: a second one would interrupt the giving back of leases.
        self._task.cancel()

    # --- the life of a job ---

    async def _live(self) -> Event:
        record = self._account.record
        self._account.folder.drop_metrics_from(record.kept_round)
        self._account.enter(JobState.FINDING, round=record.kept_round, error=None)
        book = ReceiptBook(self._means.key, record.id)
        async with Trackers(self._means.trackers) as trackers, _office(book, self._means.clock) as office:
            hiring = Hiring(self._means.key, trackers, self._means.clock, self._wish(), self._tell)
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
        tracker = str(hiring.hired[0].promise.tracker.address)
        self._account.joined(peers, reservations, tracker)

    async def _send_bundle(self, crew: LeasedCrew) -> None:
        self._account.enter(JobState.SENDING)
        began = self._means.clock.monotonic()
        answers = await asyncio.gather(*(self._deliver(lease) for lease in crew.leases.values()))
        for rank, reason in enumerate(answers):
            if reason:
                crew.dismiss(rank)
                self._account.lost(rank, crew.leases[rank].name, reason, len(crew.present))
        names, needed = list(crew.present.values()), self._spec.need.min_peers
        if len(names) < needed:
            reasons = "; ".join(reason for reason in answers if reason)
            raise JobFailed(
                f"only {len(names)} of at least {needed} peers took the bundle", cause=reasons, fix="submit again"
            )
        seconds = self._means.clock.monotonic() - began
        self._account.tell(BundleSent(peers=names, bytes=self._bundle.size * len(names), seconds=seconds))

    async def _deliver(self, lease: Lease) -> str:
        """Send the bundle to one peer; why that failed, if it is the peer or the line that failed."""
        try:
            async with aclosing(read_parts(self._bundle)) as parts:
                await lease.deliver(self._bundle.manifest(), parts)
        except (Unreachable, Refused, PeerMisbehaved) as error:
            return error.message
        return lease.gone

    async def _train(self, crew: LeasedCrew, office: ReceiptOffice) -> Event:
        record, spec = self._account.record, self._spec
        plan = TrainPlan(
            job=record.id,
            task=spec.task,
            shards=spec.need.peers,
            rounds=spec.train.rounds,
            steps=spec.train.steps,
            batch=spec.train.batch,
            seed=spec.train.seed,
            first_round=record.kept_round,
            start_state=bytes.fromhex(record.kept_state) if record.kept_state else None,
        )
        narrator = Narrator(self._account, crew, office.book, plan, self._means.clock)
        coordinator = Coordinator(
            Rounds(plan, crew.present, min_peers=spec.need.min_peers),
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
        try:
            standing = await coordinator.train()
        except TaskMistake:
            await self._settle(crew, office, narrator)
            raise
        except JobFailed:
            # Too few peers are left, but those hold what was done: it can be gone on with.
            with contextlib.suppress(AxonError):
                await self._keep_state(coordinator, crew)
            await self._settle(crew, office, narrator)
            raise
        if not standing.trained:
            return await self._leave(coordinator, crew, office, narrator)
        return await self._finish(coordinator, crew, office, narrator)

    # --- its ends ---

    async def _finish(
        self, coordinator: Coordinator, crew: LeasedCrew, office: ReceiptOffice, narrator: Narrator
    ) -> Event:
        folder = self._account.folder
        arriving = folder.path / ".model.part"
        settling = asyncio.create_task(self._settle(crew, office, narrator))
        try:
            sha256 = await coordinator.fetch("model", self._present(coordinator, crew), arriving)
            await asyncio.to_thread(put_in_place, arriving, folder.model)
            kept = await settling
        finally:
            arriving.unlink(missing_ok=True)
            settling.cancel()
        wire_bytes, credits = narrator.wire_bytes, narrator.credits()
        self._account.enter(
            JobState.FINISHED, model_sha256=sha256.hex(), wire_bytes=wire_bytes, credits=credits, kept_state=""
        )
        folder.state.unlink(missing_ok=True)
        record, now = self._account.record, self._means.clock.monotonic()
        return JobFinished(
            job=record.id,
            folder=str(folder.path),
            rounds=record.round,
            loss=record.loss or 0.0,
            metrics=record.metrics,
            samples=sum(int(row["samples"]) for row in read_metrics(folder.metrics)),
            seconds=now - self._began,
            first_step_s=(narrator.began or now) - self._began,
            wire_bytes=wire_bytes,
            credits=credits,
            receipts=kept,
            peers=list(crew.present.values()),
            lost=self._account.names_lost,
        )

    async def _leave(
        self, coordinator: Coordinator, crew: LeasedCrew, office: ReceiptOffice, narrator: Narrator
    ) -> Event:
        await self._keep_state(coordinator, crew)
        await self._settle(crew, office, narrator)
        return self._left()

    async def _keep_state(self, coordinator: Coordinator, crew: LeasedCrew) -> None:
        """Fetch what the accepted rounds led to, so that the job can go on from there with other peers."""
        standing, folder = self._present(coordinator, crew), self._account.folder
        if standing.state is None:
            return
        arriving = folder.path / ".state.part"
        try:
            sha256 = await coordinator.fetch("state", standing, arriving)
            await asyncio.to_thread(put_in_place, arriving, folder.state)
        finally:
            arriving.unlink(missing_ok=True)
        self._account.change(kept_state=sha256.hex(), kept_round=standing.round)

    async def _settle(self, crew: LeasedCrew, office: ReceiptOffice, narrator: Narrator) -> int:
        """Fetch logs and wait for the last receipts; how many receipts are kept by a tracker."""
        settled, _ = await asyncio.gather(office.settle(RECEIPTS_S), crew.keep_logs())
        if settled.unsigned or settled.not_taken:
            reason = settled.reason or "their peers went away before they had signed"
            self._account.tell(ReceiptsMissing(unsigned=settled.unsigned, not_taken=settled.not_taken, reason=reason))
        self._account.change(wire_bytes=narrator.wire_bytes, credits=narrator.credits())
        return settled.kept

    def _present(self, coordinator: Coordinator, crew: LeasedCrew) -> Standing:
        standing = coordinator.standing
        members = [rank for rank in standing.members if rank in crew.present]
        return dataclasses.replace(standing, members=members)

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
        self._account.enter(JobState.FAILED, error=shown)
        job = self._account.record.id
        self._account.tell(JobEndedBadly(job=job, code=code, message=message, cause=cause, fix=fix))


@contextlib.asynccontextmanager
async def _ended(leases: list[Lease]) -> AsyncIterator[None]:
    """Whatever happens, no lease outlives this."""
    try:
        yield
    finally:
        await asyncio.gather(*(lease.end() for lease in leases))


@contextlib.asynccontextmanager
async def _office(book: ReceiptBook, clock: Clock) -> AsyncIterator[ReceiptOffice]:
    office = ReceiptOffice(book, clock)
    try:
        yield office
    finally:
        await office.close()
