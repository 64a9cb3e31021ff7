"""Training as it is told: the coordinator's words become events. Nothing else depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from axonp2p.client.events.events import PeerHandedBack
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.clock import Clock
from axonp2p.kinds.train.check_events import ChecksAwaited, ChecksOff, ChecksUnended, NothingLearnt, PeerUnchecked
from axonp2p.kinds.train.events import (
    BestUnknown,
    ExchangeChosen,
    PeerJoined,
    PeerLeftBehind,
    PeerReady,
    RoundRedone,
    TrainingStops,
    ValuesLate,
)
from axonp2p.kinds.train.kept.best_round import LOSS, EarlyStopping
from axonp2p.kinds.train.progress import JobPace
from axonp2p.kinds.train.starting import StartingPeers
from axonp2p.training.coordinator.crew import RoundBegun, Sight
from axonp2p.training.round_messages import (
    AwaitingChecks,
    ChecksCutShort,
    ChecksImpossible,
    Chosen,
    EndsEarly,
    MemberDropped,
    MemberJoined,
    MemberLeaves,
    MemberLeftBehind,
    MemberReady,
    MemberUnchecked,
    ProgressHeard,
    RoundAccepted,
    RoundBegunAnew,
)
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice
from axonp2p.verification.claims import RoundDone

LOOK_S = 1.0
"""So often it is looked who has come through a step."""


class TrainingEvents:
    """Of one job's training."""

    def __init__(
        self, journal: JobJournal, crew: LeasedCrew, pace: JobPace, clock: Clock, stopping: EarlyStopping
    ) -> None:
        self._journal = journal
        self._crew = crew
        self._pace = pace
        self._clock = clock
        self._stopping = stopping
        self._best_unknown = False
        """Whether it is told that no round can be the best."""
        self._in_rounds = set(crew.present)
        self._starting = StartingPeers(clock.monotonic())
        self._still: set[str] = set()
        """Peers of which it is told that their steps changed nothing."""

    def show(self, sight: Sight) -> None:
        """The coordinator's word."""
        match sight:
            case MemberReady(rank=rank, prepared=prepared):
                self._starting.ready(rank)
                self._journal.tell(PeerReady(peer=self._name(rank), rank=rank, parameters=prepared.parameters))
            case ProgressHeard(rank=rank, progress=progress):
                if progress.step:
                    self._starting.stepped(rank)
                if progress.round == self._journal.round:
                    now = self._clock.monotonic()
                    self._journal.tell(self._pace.heard(self._name(rank), progress, now))
            case RoundBegun():
                self._starting.steps_begin(self._clock.monotonic())
            case RoundAccepted(round=number, reports=reports):
                self._starting.round_done()
                self._accepted(number, reports)
            case RoundBegunAnew(round=number, attempt=attempt, reason=reason):
                self._journal.tell(RoundRedone(round=number, attempt=attempt, reason=reason))
            case EndsEarly():
                self._ends_early(sight)
            case MemberLeaves(rank=rank, reason=reason):
                number = self._journal.round
                self._journal.tell(PeerHandedBack(peer=self._name(rank), reason=reason, round=number))
            case ChecksImpossible(reason=reason):
                self._journal.tell(ChecksOff(reason=reason))
            case MemberUnchecked(rank=rank, reason=reason):
                self._journal.tell(PeerUnchecked(peer=self._name(rank), reason=reason))
            case AwaitingChecks(number=number):
                self._journal.tell(ChecksAwaited(checks=number))
            case ChecksCutShort(number=number, reason=reason):
                self._journal.tell(ChecksUnended(checks=number, reason=reason))
            case Chosen(round=number, choice=choice):
                self._chosen(number, choice)
            case MemberJoined(rank=rank, round=number):
                self._in_rounds.add(rank)
                self._journal.tell(PeerJoined(peer=self._name(rank), round=number))
            case MemberLeftBehind(rank=rank, reason=reason):
                self._in_rounds.discard(rank)
                number, left = self._journal.round, len(self._in_rounds)
                self._journal.tell(PeerLeftBehind(peer=self._name(rank), round=number, reason=reason, left=left))
            case MemberDropped(rank=rank):
                self._in_rounds.discard(rank)

    async def tell_who_starts(self) -> None:
        """Until all peers have come through a local step: who has not, whenever that has taken long."""
        while not self._starting.over(self._crew.present):
            await asyncio.sleep(LOOK_S)
            loaded = {rank for rank, lease in self._crew.leases.items() if lease.worker_started}
            if event := self._starting.due(self._clock.monotonic(), self._crew.present, loaded):
                self._journal.tell(event)

    def _ends_early(self, ends: EndsEarly) -> None:
        event, best = TrainingStops(rounds=ends.rounds), self._stopping.best
        if best and not ends.wished:
            event = msgspec.structs.replace(
                event, metric=self._stopping.by.metric, best_round=best.rounds - 1, best=best.value
            )
        self._journal.tell(event)

    def _chosen(self, number: int, choice: ExchangeChoice) -> None:
        event = ExchangeChosen(
            round=number,
            exchange_every=choice.settings.exchange_every,
            bits=choice.bits,
            overlap=choice.settings.overlap,
            density={self._name(rank): coding.density for rank, coding in choice.gather.items()},
            outer_learning_rate=choice.settings.outer_learning_rate,
            outer_momentum=choice.settings.outer_momentum,
            round_bytes=choice.bytes_a_round,
            dense_bytes=choice.dense_bytes_a_round,
            why=choice.why,
            aggregation=choice.settings.rule.name,
            hostile=choice.settings.rule.hostile,
        )
        self._journal.tell(event)

    def _accepted(self, number: int, reports: Mapping[int, RoundDone]) -> None:
        still = {self._name(rank): report.unmoved for rank, report in reports.items() if report.unmoved}
        if still.keys() - self._still:
            self._still |= still.keys()
            self._journal.tell(NothingLearnt(round=number, legs=still))
        given = sorted({name for report in reports.values() for name in report.metrics})
        metric = self._stopping.by.metric
        if given and metric not in [*given, LOSS] and not self._best_unknown:
            self._best_unknown = True
            self._journal.tell(BestUnknown(metric=metric, given=given))
        if late := {self._name(rank): report.kept_back for rank, report in reports.items() if report.kept_back}:
            self._journal.tell(ValuesLate(round=number, values=late))

    def _name(self, rank: int) -> str:
        return self._crew.leases[rank].name
