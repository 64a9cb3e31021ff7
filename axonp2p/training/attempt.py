"""One attempt at one round: who has finished its steps, who has reported, who is late. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Collection

from axonp2p.training.deadlines import Patience, rest_deadline, stall_deadline
from axonp2p.training.messages import Progress, RoundDone


class Attempt:
    """What was heard since `StartRound`. The members of an attempt never change: a loss begins the next attempt.

    Nobody can finish the exchange before all have finished their local steps, so lateness is judged on these first.
    """

    def __init__(self, round: int, number: int, state: bytes, started: float, members: Collection[int]) -> None:
        self.round = round
        self.number = number
        self.state = state
        """Where the attempt starts from: the last accepted state."""
        self.started = started
        self.members = frozenset(members)
        self.finished: dict[int, float] = {}
        """When each member had finished its local steps."""
        self.reported: dict[int, float] = {}
        self.reports: dict[int, RoundDone] = {}

    def compare(self, message: Progress | RoundDone) -> int:
        """-1 when the message is about an earlier attempt, 0 when about this one, 1 when about one yet to come."""
        theirs, ours = (message.round, message.attempt), (self.round, self.number)
        return (theirs > ours) - (theirs < ours)

    def heard_finished(self, rank: int, now: float) -> None:
        """The member's local steps are done."""
        self.finished.setdefault(rank, now)

    def heard_done(self, rank: int, done: RoundDone, now: float) -> bool:
        """The member has reported; False when it had already reported something else."""
        if rank in self.reports:
            return self.reports[rank] == done
        self.reports[rank] = done
        self.reported[rank] = now
        self.heard_finished(rank, now)
        return True

    def usual_s(self) -> float:
        """What a member needed from the start to its report, in the median."""
        return statistics.median(self.reported.values()) - self.started

    def deadline(self, patience: Patience, usual_s: float | None, exchange_s: float) -> float:
        """When those that are waited for are late. `exchange_s` is what an exchange may take at the least."""
        expected = len(self.members)
        if (until := rest_deadline(self.started, self.reported.values(), expected)) is not None:
            return until
        if len(self.finished) == expected:
            since = max(self.finished.values())
            usual = max(usual_s or 0.0, since - self.started)
            return max(stall_deadline(since, usual, patience), since + exchange_s)
        if (until := rest_deadline(self.started, self.finished.values(), expected)) is not None:
            return until
        return stall_deadline(self.started, usual_s, patience)

    def late(self, now: float) -> dict[int, str]:
        """Those that keep the others waiting, and how; nobody when it cannot be told who does."""
        reason = f"it had not finished round {self.round + 1} after {now - self.started:.0f} s"
        if 2 * len(self.reported) >= len(self.members):
            return dict.fromkeys(sorted(self.members - self.reported.keys()), reason)
        if self.finished:
            return dict.fromkeys(sorted(self.members - self.finished.keys()), reason)
        return {}

    def awaited_after(self, blamed: Collection[int]) -> set[int]:
        """Who has yet to come as far as those at which the task failed: through the steps, or to the report."""
        failed_late = all(rank in self.finished for rank in blamed)
        return set(self.members - (self.reported.keys() if failed_late else self.finished.keys()))
