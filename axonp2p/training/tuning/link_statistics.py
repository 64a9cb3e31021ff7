"""The measurements of a job's members, and the choices by them, round for round. Pure.

Measurements jitter, so a new one counts only when it differs from the last by a quarter.
"""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from axonp2p.jobs.aggregation import may_lie
from axonp2p.training.plan import TrainPlan
from axonp2p.training.tuning.costs import ASSUMED_DOWNLOAD, ASSUMED_UPLOAD, ExchangeFacts, ModelSize, waiting_s
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice, choose
from axonp2p.verification.claims import RoundDone
from axonp2p.verification.rates import TRIALS

NOTEWORTHY = 1.25
AS_SENT = 0.7
"""A member that receives at least so much of what the others can send each is not held up by its own line."""
CARRIED_ROUNDS = 4
"""An upload that a member had in one of its last so many rounds is one that its line can have."""
PATIENT_ROUNDS = 3
"""A member whose values came too late for all exchanges of so many rounds in a row has to go."""


@dataclass(frozen=True)
class Line:
    """The speeds of a member's line, in bytes a second; 0: not known."""

    upload: float = 0.0
    download: float = 0.0


class LinkStatistics:
    """Of one job. `lines` are what the members' owners declared; `checked`: whether work is done again."""

    def __init__(self, plan: TrainPlan, lines: Mapping[int, Line], *, checked: bool = False) -> None:
        self._plan = plan
        self._marks_bytes = plan.memory_mb * 2**20 if checked else 0
        self._declared = dict(lines)
        self._upload: dict[int, float] = {}
        self._carried: dict[int, deque[float]] = {}
        self._download: dict[int, float] = {}
        self._step_s: dict[int, float] = {}
        self._mark_s: dict[int, float] = {}
        self._choice: ExchangeChoice | None = None
        self._facts: ExchangeFacts | None = None
        """Those that it was chosen by."""
        self._missed: dict[int, int] = {}
        self._reported: Counter[int] = Counter()

    def line(self, rank: int, upload: float, download: float) -> None:
        """Take in the measurement of the member's own daemon."""
        _note(self._upload, rank, upload)
        _note(self._download, rank, download)

    def round(self, reports: Mapping[int, RoundDone]) -> dict[int, str]:
        """An accepted round's reports; who has to go because the others have long gone on without its values."""
        late: dict[int, str] = {}
        for rank, done in reports.items():
            # Marks come with each leg: with them, steps in short legs would seem to take longer than in long ones.
            stepping = max(0.0, done.train_seconds - done.mark_seconds)
            _note(self._step_s, rank, stepping * self._plan.batch / max(1, done.samples))
            _note(self._mark_s, rank, done.mark_seconds / max(1, len(done.marks)))
            self._note_carried(rank, done)
            missed = self._missed_all(rank, reports)
            self._missed[rank] = self._missed.get(rank, 0) + 1 if missed else 0
            if self._missed[rank] >= PATIENT_ROUNDS:
                late[rank] = f"its values came too late for all exchanges of {PATIENT_ROUNDS} rounds"
        return late

    def choose(
        self,
        model: ModelSize,
        members: Collection[int],
        listeners: int,
        cut: Collection[frozenset[int]],
        *,
        round: int = 0,
    ) -> tuple[ExchangeChoice, bool]:
        """How the members exchange in this round; and whether that differs from what was chosen before."""
        facts = ExchangeFacts(
            values=model[1],
            parameters=model[0],
            exact=model[2],
            members=tuple(sorted(members)),
            steps=self._plan.steps,
            step_s=dict(self._step_s),
            upload={rank: self._up(rank) for rank in members},
            download={rank: self._down(rank, members) for rank in members},
            rtt_s=self._plan.rtt_s,
            listeners=listeners,
            rounds=round,
            marks_bytes=self._marks_bytes,
            mark_s=dict(self._mark_s),
        )
        # Where a measurement takes the place of an assumption, there is no choice to keep for the sake of calm.
        before = self._choice if self._facts and facts.known <= self._facts.known else None
        choice = choose(self._plan.options, facts, cut=cut, before=before)
        changed = self._choice is None or not choice.same_terms(self._choice)
        self._choice, self._facts = choice, facts
        return choice, changed

    def upload(self, rank: int) -> float:
        """The speed that the member's line is taken to have, in bytes a second."""
        return self._up(rank) or ASSUMED_UPLOAD

    def _up(self, rank: int) -> float:
        told = self._upload.get(rank, 0.0) or self._declared.get(rank, Line()).upload
        carried = max(self._carried.get(rank, ()), default=0.0)
        return carried if carried > (told or ASSUMED_UPLOAD) else told

    def _note_carried(self, rank: int, done: RoundDone) -> None:
        """The least that its line carries: short exchanges are over before TCP and the daemon know how fast it is.

        Where a member works during an exchange, on its next leg or its first trials, nobody knows how long that took.
        """
        self._reported[rank] += 1
        worked = not self._choice or self._choice.settings.overlap or self._reported[rank] <= TRIALS
        if worked or not self._facts or not done.exchange_seconds:
            return
        idle = done.exchanges * waiting_s(self._facts)
        wire_s = max(done.exchange_seconds - idle, done.exchange_seconds / 2)
        self._carried.setdefault(rank, deque(maxlen=CARRIED_ROUNDS)).append(done.sent_bytes / wire_s)

    def _down(self, rank: int, members: Collection[int]) -> float:
        """Bytes come in as fast as they are sent: only slower ones tell of the line itself."""
        measured = self._download.get(rank, 0.0)
        declared = self._declared.get(rank, Line()).download
        sent = [self.upload(other) for other in members if other != rank]
        if measured and sent and measured < AS_SENT * statistics.mean(sent):
            return measured
        return max(measured, declared or ASSUMED_DOWNLOAD)

    def _missed_all(self, rank: int, reports: Mapping[int, RoundDone]) -> bool:
        """Whether every other owner had to do without the member's values, and nearly all of them, by its own word."""
        assert self._choice
        assert self._facts
        owners = [owner for owner in reports if owner != rank and self._choice.shares.get(owner)]
        # The word of as many as may lie is not enough: they would have others dropped.
        few = may_lie(self._choice.settings.rule, len(self._choice.shares))
        if len(owners) <= few or any(rank not in reports[owner].left_out for owner in owners):
            return False
        share = self._choice.shares.get(rank, 0) / sum(self._choice.shares.values())
        return reports[rank].kept_back >= 0.9 * (1 - share) * self._facts.values * reports[rank].exchanges


def _note(known: dict[int, float], rank: int, value: float) -> None:
    before = known.get(rank, 0.0)
    if value > 0 and not before / NOTEWORTHY <= value <= before * NOTEWORTHY:
        known[rank] = value
