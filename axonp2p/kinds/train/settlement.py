"""The coordinator's messages carried out, whoever watches: rounds kept, peers paid, leases given back.

The telling of it is another's (`training_events`): a job of which nothing is told ends with the same receipts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.settlement import JobSettlement
from axonp2p.client.storage.job_record import NumberedReceipts
from axonp2p.clock import Clock
from axonp2p.kinds.train.checked_work import CheckedWork
from axonp2p.kinds.train.events import PeerRound, RoundFinished
from axonp2p.kinds.train.progress import JobPace, summarise
from axonp2p.kinds.train.record import AheadRound
from axonp2p.kinds.train.round_commits import RoundCommits
from axonp2p.ledger.receipt import Work
from axonp2p.training.coordinator.crew import RoundBegun, Sight
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    CheckEnded,
    EndsEarly,
    EnoughAwake,
    GoesOn,
    HelpedSince,
    JobWaits,
    MemberDropped,
    MemberPaused,
    MemberReady,
    MemberResumed,
    ProgressHeard,
    RoundAccepted,
    RoundBooked,
)
from axonp2p.training.tuning.costs import dense_bytes
from axonp2p.verification.claims import RoundDone


class RoundSettlement:
    """One job's training, from the first member that is ready to the last round."""

    def __init__(
        self,
        books: RoundCommits,
        settlement: JobSettlement,
        plan: TrainPlan,
        clock: Clock,
        checked: CheckedWork,
    ) -> None:
        self._books = books
        self._checked = checked
        self._journal = books.journal
        self._settlement = settlement
        self._crew = settlement.crew
        self._plan = plan
        self._clock = clock
        self.pace = JobPace(
            rounds=plan.ends_after or plan.rounds, first_round=plan.first_round, steps=plan.steps, now=clock.monotonic()
        )
        self._values = 0

    def heard(self, sight: Sight) -> None:
        """The coordinator's word."""
        match sight:
            case GoesOn(rounds=rounds, holders=holders):
                self._books.go_on(rounds, [self._name(rank) for rank in holders])
            case MemberReady(prepared=prepared):
                self._values = prepared.parameters + prepared.exact
            case RoundBegun(attempt=attempt) if attempt == self._plan.first_attempt:
                self.pace.begun_round(self._clock.monotonic())
            case ProgressHeard(progress=progress) if progress.round == self._journal.round:
                self.pace.begun(self._clock.monotonic())
            case RoundAccepted(round=number, reports=reports, state=state):
                self._accepted(number, reports, state)
            case RoundBooked(round=number, state=kept):
                self._book(number, kept)
            case MemberPaused(rank=rank, reason=reason):
                self._journal.paused(rank, self._name(rank), reason)
            case MemberResumed(rank=rank):
                self._journal.resumed(rank, self._name(rank))
            case JobWaits(ranks=ranks):
                self._journal.waits_for([self._name(rank) for rank in ranks])
            case EnoughAwake():
                self._journal.waits_for([])
            case EndsEarly(rounds=rounds):
                self.pace.ends_after(rounds)
                self._journal.change(lasting=True, stops_after=rounds)
            case CheckEnded():
                self._checked.ended(sight)
            case HelpedSince(flops=flops):
                self._checked.helped = flops
            case MemberDropped(rank=rank, reason=reason):
                self._crew.dismiss(rank, reason)
                self._journal.lost(rank, self._name(rank), reason, len(self._crew.present))

    def _accepted(self, number: int, reports: Mapping[int, RoundDone], state: bytes) -> None:
        # Bytes that one member sent another received: counting both would count each byte twice.
        round_bytes = sum(report.sent_bytes for report in reports.values())
        self._settlement.between_members += round_bytes
        summary = summarise({self._name(rank): report for rank, report in reports.items()})
        seconds, eta = self.pace.finished_round(self._clock.monotonic())
        credits = self._settlement.credits()
        event = RoundFinished(
            at=self._clock.now(),
            round=number,
            rounds=self._books.record.units,
            loss=summary.loss,
            metrics=summary.metrics,
            samples=summary.samples,
            samples_per_second=summary.samples_per_second,
            seconds=seconds,
            wire_bytes=self._settlement.wire_bytes,
            credits=sum(credits.values()),
            eta_s=eta,
            round_bytes=round_bytes,
            dense_bytes=self._dense_bytes(reports),
            exchange_seconds=max(report.exchange_seconds for report in reports.values()),
            peers={self._name(rank): _share(report, credits[self._name(rank)]) for rank, report in reports.items()},
        )
        ahead = AheadRound(
            finished=event,
            state=state.hex(),
            round_bytes=self._settlement.more_bytes(),
            reports={rank: msgspec.structs.replace(report, slices=[], marks=[]) for rank, report in reports.items()},
        )
        self._books.accepted(ahead)

    def _book(self, number: int, state: bytes | None) -> None:
        """The round is done for good: its peers are paid for it."""
        ahead = self._books.record.ahead
        reports = ahead.reports if ahead and ahead.finished.round == number else {}
        last = number + 1 == self._books.record.units
        works = {rank: work_of(report) for rank, report in self._checked.to_be_paid(reports, last=last).items()}
        self._settlement.pay(works, partial(self._books.book, number, state))

    def _dense_bytes(self, reports: Mapping[int, RoundDone]) -> int:
        """The bytes that data-parallel training would have exchanged for as many steps as a member took in the mean."""
        steps = sum(report.samples for report in reports.values()) / (self._plan.batch * len(reports))
        return round(dense_bytes(self._values, len(reports)) * steps)

    def _name(self, rank: int) -> str:
        return self._crew.leases[rank].name


def paid_ahead(books: RoundCommits, book: ReceiptBook, now: float, ahead: AheadRound) -> list[NumberedReceipts]:
    """Write receipts for a round of the last life of the job, which enters the books now; all that are to be kept."""
    there = {peer.rank: peer for peer in books.record.peers if not peer.lost}
    for rank, report in ahead.reports.items():
        if peer := there.get(rank):
            book.write(peer.reservation, peer.peer, work_of(report), now)
    return book.keep()


def work_of(report: RoundDone) -> Work:
    """The work that a member is paid for in an accepted round."""
    return Work(
        unit=report.round,
        flops=report.flops,
        samples=report.samples,
        milliseconds=max(0, round(report.train_seconds * 1000)),
    )


def _share(report: RoundDone, credits: float) -> PeerRound:
    return PeerRound(
        train_seconds=report.train_seconds,
        exchange_seconds=report.exchange_seconds,
        exchanges=report.exchanges,
        samples=report.samples,
        sent_bytes=report.sent_bytes,
        received_bytes=report.received_bytes,
        kept_back=report.kept_back,
        credits=credits,
    )
