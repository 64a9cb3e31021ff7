"""After the last round: the checks that are still open are waited for before the job ends, but not long. Pure.

Until then the last round does not enter the books, so nobody has a receipt for it: who is convicted now gets none. A
job never fails because of it: when time is over, too few are there, or the client goes, it ends as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from axonp2p.training.round_messages import (
    Action,
    AwaitingChecks,
    ChecksCutShort,
    HelpedSince,
    KeepState,
    RoundBooked,
    Trained,
)
from axonp2p.training.rounds.membership import Membership
from axonp2p.training.spot_checks.open_checks import CaseOutcome
from axonp2p.training.spot_checks.scheduler import SpotChecks


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
