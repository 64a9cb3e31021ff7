"""Training as it is told: what the coordinator shows becomes events, receipts and lines in the job's folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from axonp2p.client.events.events import (
    ChecksAwaited,
    ChecksOff,
    ChecksUnended,
    ExchangeChosen,
    NothingLearnt,
    PeerHandedBack,
    PeerJoined,
    PeerLeftBehind,
    PeerReady,
    PeerRound,
    RoundFinished,
    ValuesLate,
)
from axonp2p.client.events.events import RoundRedone as RoundRedoneEvent
from axonp2p.client.ledger.receipts import ReceiptBook
from axonp2p.client.run.checked_work import CheckedWork
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.run.progress import JobPace, summarise
from axonp2p.client.storage.books import RoundCommits
from axonp2p.client.storage.job_record import AheadRound, JobRecord
from axonp2p.clock import Clock
from axonp2p.ledger.balances import credits_of
from axonp2p.training.coordinator.crew import RoundBegun, Sight
from axonp2p.training.messages import RoundDone
from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    AwaitingChecks as ChecksAreAwaited,
)
from axonp2p.training.round_messages import (
    CheckEnded,
    Chosen,
    EnoughAwake,
    GoesOn,
    HelpedSince,
    JobWaits,
    MemberDropped,
    MemberJoined,
    MemberLeaves,
    MemberLeftBehind,
    MemberPaused,
    MemberReady,
    MemberResumed,
    ProgressHeard,
    RoundAccepted,
    RoundBegunAnew,
    RoundBooked,
)
from axonp2p.training.round_messages import (
    ChecksCutShort as ChecksAreUnended,
)
from axonp2p.training.round_messages import (
    ChecksImpossible as ChecksAreOff,
)
from axonp2p.training.tuning.choice import Choice
from axonp2p.training.tuning.costs import dense_bytes


class Tally:
    """What one program's work at a job came to, and what was there before it: bytes and credits."""

    def __init__(self, record: JobRecord, crew: LeasedCrew, receipts: ReceiptBook) -> None:
        self.crew = crew
        self.receipts = receipts
        self.between_members = 0
        self._bytes_before = self._bytes_told = record.wire_bytes
        self._credits_before = dict(record.credits)
        self.voided: set[str] = set()
        """Names of peers whose receipts of this job are void."""

    @property
    def wire_bytes(self) -> int:
        """All bytes of the job: between client and peers, and among the peers, each counted once."""
        return self._bytes_before + self.crew.wire_bytes + self.between_members

    def more_bytes(self) -> int:
        """Those since it was asked last."""
        before, self._bytes_told = self._bytes_told, self.wire_bytes
        return self._bytes_told - before

    def credits(self) -> dict[str, float]:
        """Credits of counter-signed receipts, by the peer's name; those of the job's earlier lives included."""
        found = dict(self._credits_before)
        names = {lease.row.peer: lease.name for lease in self.crew.leases.values()}
        for peer, name in names.items():
            found[name] = found.get(name, 0.0) + credits_of(self.receipts.flops.get(peer, 0))
        return found | dict.fromkeys(self.voided, 0.0)


class Narrator:
    """One job's training, from the first member that is ready to the last round."""

    def __init__(self, books: RoundCommits, tally: Tally, plan: TrainPlan, clock: Clock, checked: CheckedWork) -> None:
        self._books = books
        self._checked = checked
        self._account = books.account
        self._tally = tally
        self._crew = tally.crew
        self._plan = plan
        self._clock = clock
        self._pace = JobPace(rounds=plan.rounds, first_round=plan.first_round, steps=plan.steps, now=clock.monotonic())
        self._values = 0
        self._in_rounds = set(self._crew.present)
        self._still: set[str] = set()
        """Peers of which it is told that their steps changed nothing."""

    @property
    def began(self) -> float | None:
        """When the first sign of training came, in monotonic seconds."""
        return self._pace.began

    def show(self, sight: Sight) -> None:
        """The coordinator's word."""
        match sight:
            case GoesOn(rounds=rounds, holders=holders):
                self._books.go_on(rounds, [self._name(rank) for rank in holders])
            case MemberReady(rank=rank, prepared=prepared):
                self._values = prepared.parameters + prepared.exact
                self._account.tell(PeerReady(peer=self._name(rank), rank=rank, parameters=prepared.parameters))
            case RoundBegun(attempt=attempt) if attempt == self._plan.first_attempt:
                self._pace.begun_round(self._clock.monotonic())
            case ProgressHeard(rank=rank, progress=progress):
                if progress.round == self._account.round:
                    now = self._clock.monotonic()
                    self._account.tell(self._pace.heard(self._name(rank), progress, now))
            case RoundAccepted(round=number, reports=reports, state=state):
                self._accepted(number, reports, state)
            case RoundBooked(round=number, state=kept):
                self._book(number, kept)
            case RoundBegunAnew(round=number, attempt=attempt, reason=reason):
                self._account.tell(RoundRedoneEvent(round=number, attempt=attempt, reason=reason))
            case MemberPaused(rank=rank, reason=reason):
                self._account.paused(rank, self._name(rank), reason)
            case MemberResumed(rank=rank):
                self._account.resumed(rank, self._name(rank))
            case MemberLeaves(rank=rank, reason=reason):
                number = self._account.round
                self._account.tell(PeerHandedBack(peer=self._name(rank), reason=reason, round=number))
            case JobWaits(ranks=ranks):
                self._account.waits_for([self._name(rank) for rank in ranks])
            case EnoughAwake():
                self._account.waits_for([])
            case CheckEnded():
                self._checked.show(sight)
            case ChecksAreOff(reason=reason):
                self._account.tell(ChecksOff(reason=reason))
            case ChecksAreAwaited(number=number):
                self._account.tell(ChecksAwaited(checks=number))
            case ChecksAreUnended(number=number, reason=reason):
                self._account.tell(ChecksUnended(checks=number, reason=reason))
            case HelpedSince(flops=flops):
                self._checked.helped = flops
            case Chosen(round=number, choice=choice):
                self._chosen(number, choice)
            case MemberJoined(rank=rank, round=number):
                self._in_rounds.add(rank)
                self._account.tell(PeerJoined(peer=self._name(rank), round=number))
            case MemberLeftBehind(rank=rank, reason=reason):
                self._in_rounds.discard(rank)
                number, left = self._account.round, len(self._in_rounds)
                self._account.tell(PeerLeftBehind(peer=self._name(rank), round=number, reason=reason, left=left))
            case MemberDropped(rank=rank, reason=reason):
                self._in_rounds.discard(rank)
                self._crew.dismiss(rank, reason)
                self._account.lost(rank, self._name(rank), reason, len(self._crew.present))

    def _chosen(self, number: int, choice: Choice) -> None:
        event = ExchangeChosen(
            round=number,
            exchange_every=choice.exchange_every,
            bits=choice.bits,
            overlap=choice.overlap,
            density={self._name(rank): coding.density for rank, coding in choice.gather.items()},
            outer_learning_rate=choice.outer_learning_rate,
            outer_momentum=choice.outer_momentum,
            round_bytes=choice.bytes_a_round,
            dense_bytes=choice.dense_bytes_a_round,
            why=choice.why,
            aggregation=choice.rule.name,
            hostile=choice.rule.hostile,
        )
        self._account.tell(event)

    def _accepted(self, number: int, reports: Mapping[int, RoundDone], state: bytes) -> None:
        # What one member sent another received: counting both would count each byte twice.
        round_bytes = sum(report.sent_bytes for report in reports.values())
        self._tally.between_members += round_bytes
        summary = summarise({self._name(rank): report for rank, report in reports.items()})
        seconds, eta = self._pace.finished_round(self._clock.monotonic())
        credits = self._tally.credits()
        event = RoundFinished(
            at=self._clock.now(),
            round=number,
            rounds=self._plan.rounds,
            loss=summary.loss,
            metrics=summary.metrics,
            samples=summary.samples,
            samples_per_second=summary.samples_per_second,
            seconds=seconds,
            wire_bytes=self._tally.wire_bytes,
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
            round_bytes=self._tally.more_bytes(),
            reports={rank: msgspec.structs.replace(report, slices=[], marks=[]) for rank, report in reports.items()},
        )
        self._books.accepted(ahead)
        still = {self._name(rank): report.unmoved for rank, report in reports.items() if report.unmoved}
        if still.keys() - self._still:
            self._still |= still.keys()
            self._account.tell(NothingLearnt(round=number, legs=still))
        if late := {self._name(rank): report.kept_back for rank, report in reports.items() if report.kept_back}:
            self._account.tell(ValuesLate(round=number, values=late))

    def _book(self, number: int, state: bytes | None) -> None:
        """The round is done for good: its peers are paid for it."""
        ahead = self._account.record.ahead
        reports = ahead.reports if ahead and ahead.finished.round == number else {}
        last = number + 1 == self._plan.rounds
        written = self._crew.write_receipts(self._checked.to_be_paid(reports, last=last))
        # Written down before they are sent: no number is given twice, and none is left out.
        self._books.book(number, state, self._tally.credits(), self._tally.receipts.keep())
        self._account.afterwards(partial(self._crew.ask_signatures, written))

    def _dense_bytes(self, reports: Mapping[int, RoundDone]) -> int:
        """What data-parallel training would have exchanged for as many steps as a member took in the mean."""
        steps = sum(report.samples for report in reports.values()) / (self._plan.batch * len(reports))
        return round(dense_bytes(self._values, len(reports)) * steps)

    def _name(self, rank: int) -> str:
        return self._crew.leases[rank].name


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
