"""After which round a job ends: the last of its plan, or an earlier one. Pure.

An earlier one is the last when the client wants no more, or when what the rounds came to says that they are enough. The
job then ends as after all rounds: its last state is kept, and the last checks are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import Action, EndsEarly
from axonp2p.verification.claims import RoundDone

AreEnough = Callable[[int, Mapping[int, RoundDone]], bool]
"""Whether no round is wanted after this one, of which members reported so. Asked once for each accepted round."""


class LastRound:
    """Of one job."""

    def __init__(self, plan: TrainPlan, are_enough: AreEnough | None, say: Callable[[Action], None]) -> None:
        self.rounds = plan.ends_after or plan.rounds
        """How many there are."""
        self._are_enough = are_enough
        self._say = say
        self._runs: int | None = None
        """The round that is trained, from 0; None before the first one of this life."""
        self._wished = False

    def is_last(self, round: int) -> bool:
        """Whether no round follows this one."""
        return round + 1 >= self.rounds

    def begins(self, round: int) -> None:
        """All that came before this round is accepted."""
        first = self._runs is None
        self._runs = round
        if first and self._wished:
            self._end_after(max(1, round), wished=True)

    def wish(self) -> None:
        """The client wants no round after the one that runs."""
        self._wished = True
        if self._runs is not None:
            self._end_after(self._runs + 1, wished=True)

    def accepted(self, round: int, reports: Mapping[int, RoundDone]) -> None:
        """Its members have the same weights."""
        if self._are_enough and self._are_enough(round, reports):
            self._end_after(round + 1, wished=False)

    def _end_after(self, rounds: int, *, wished: bool) -> None:
        if rounds < self.rounds:
            self.rounds = rounds
            self._say(EndsEarly(rounds, wished))
