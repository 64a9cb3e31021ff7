"""After which round a job ends, and which checks are waited for then. Pure.

An earlier round than the last of the plan ends the job when the client wants no more, or when what the rounds came to
says that they are enough. The job then ends as after all rounds.

Checks that are open after the last round are waited for, but not long. Until then the round does not enter the books,
so nobody has a receipt for it: who is convicted now gets none. A job never fails because of it: when time is over, too
few are there, or the client goes, it ends as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from axonp2p.training.plan import TrainPlan
from axonp2p.training.round_messages import (
    Action,
    AwaitingChecks,
    ChecksCutShort,
    EndsEarly,
    HelpedSince,
    KeepState,
    RoundBooked,
    Trained,
)
from axonp2p.training.rounds.membership import Membership
from axonp2p.training.spot_checks.open_checks import CaseOutcome
from axonp2p.training.spot_checks.scheduler import SpotChecks
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


class LastChecks:
    """Those of one job."""

    def __init__(self, checks: SpotChecks | None, membership: Membership, say: Callable[[Action], None]) -> None:
        self._checks = checks
        self._membership = membership
        self._say = say
        self._state: bytes | None = None
        self._until = math.inf
        self._stopped = ""
        self._held: list[RoundBooked] = []
        self.helped: Counter[int] = Counter()
        """Operations that members spent on the steps of others since they last reported a round."""

    @property
    def deadline(self) -> float:
        """When it is not waited for any longer."""
        return self._until

    def begin(self, state: bytes, now: float) -> None:
        """All rounds are accepted, and led to this state."""
        self._state = state
        if self._checks and self._checks.open_cases:
            self._until = now + self._checks.close(now)
            self._say(AwaitingChecks(self._checks.open_cases))

    def book(self, said: Sequence[KeepState | RoundBooked]) -> None:
        """These rounds may enter the books; the last one only when the checks of it are over."""
        for action in said:
            if self._state is not None and isinstance(action, RoundBooked):
                self._held.append(action)
            else:
                self._say(action)

    def stop(self) -> None:
        """The client waits no longer."""
        self._stopped = "the client went"

    def step(self, now: float) -> bool:
        """End it if it is over; whether it is."""
        why = self._why_over(now)
        if why is None:
            return False
        if self._checks and self._until < math.inf:
            self.settle(self._checks.end())
            if unended := self._checks.open_cases:
                self._say(ChecksCutShort(unended, why or "nobody is left to be asked"))
        if self.helped:
            self._say(HelpedSince(dict(self.helped)))
        for booked in self._held:
            self._say(booked)
        assert self._state is not None
        self._say(Trained(self._state, list(self._membership.members)))
        return True

    def settle(self, found: CaseOutcome) -> None:
        """Say what came of a check, and let those go that have to."""
        for action in found.said:
            self._say(action)
        self._membership.drop_all(
            {rank: reason for rank, reason in found.gone.items() if rank in self._membership.present}
        )

    def _why_over(self, now: float) -> str | None:
        """None while something may come of waiting; empty when nothing can."""
        membership, members = self._membership, self._membership.members
        awake = membership.awake & set(members)
        if self._stopped:
            return self._stopped
        if len(awake) < membership.least or membership.pauses.too_few_stay(members):
            return "too few peers are there"
        if now >= self._until:
            return "they took too long"
        return None if self._checks and self._checks.goes_on(awake, membership.present) else ""
