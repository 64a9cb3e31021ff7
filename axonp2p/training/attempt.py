"""One attempt at one round: who has finished its steps, who has reported, who is late. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping

from axonp2p.errors import JobFailed
from axonp2p.training.deadlines import Patience, rest_deadline, rest_s, stall_deadline
from axonp2p.training.messages import Progress, RoundDone, StartRound
from axonp2p.training.round_messages import Action, ProgressHeard, RoundReported, Tell


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

    def orders(self, shares: Mapping[int, list[int]], steps: int) -> list[Action]:
        """What begins it. `shares` are the shards by rank."""
        members = sorted(self.members)
        return [
            Tell(
                rank,
                StartRound(
                    round=self.round,
                    attempt=self.number,
                    state=self.state,
                    members=members,
                    shards=shares[rank],
                    steps=steps,
                ),
            )
            for rank in members
        ]

    def heard(self, event: ProgressHeard | RoundReported, steps: int, now: float) -> str:
        """What a member told of a round of so many `steps`; gives what is wrong with it, if anything is."""
        message = told_in(event)
        theirs, ours = (message.round, message.attempt), (self.round, self.number)
        if theirs > ours:
            return not_begun(event)
        if theirs < ours:
            return ""  # it crossed our order on its way
        if isinstance(message, RoundDone):
            if self.reports.setdefault(event.rank, message) != message:
                return "it reported a round twice"
            self.reported.setdefault(event.rank, now)
        elif message.step < steps:
            return ""
        self.finished.setdefault(event.rank, now)
        return ""

    def usual_s(self) -> float:
        """What a member needed from the start to its report, in the median."""
        return statistics.median(self.reported.values()) - self.started

    def deadline(
        self, patience: Patience, usual_s: float | None, exchange_s: float, paused: Mapping[int, float]
    ) -> float:
        """When those that are waited for are late. `exchange_s` is what an exchange may take at the least.

        `paused` says since when members stand still. The usual time is learned from the others.
        """
        still = {rank: since for rank, since in paused.items() if rank in self.members - self.reported.keys()}
        expected = len(self.members) - len(still)
        if (until := rest_deadline(self.started, self.reported.values(), expected)) is not None:
            return until
        if len(self.finished) == len(self.members):
            since = max(self.finished.values())
            usual = max(usual_s or 0.0, since - self.started)
            until = max(stall_deadline(since, usual, patience), since + exchange_s)
            # It stands still in the middle of the exchange, which nobody can finish without it.
            return min(until, max(since, *still.values()) + rest_s(since - self.started)) if still else until
        expected = len(self.members) - len(still.keys() - self.finished.keys())
        if (until := rest_deadline(self.started, self.finished.values(), expected)) is not None:
            return until
        return stall_deadline(self.started, usual_s, patience)

    def late(self, now: float, paused: Collection[int]) -> dict[int, str]:
        """Those that keep the others waiting, and how; nobody when it cannot be told who does."""
        reason = f"it had not finished round {self.round + 1} after {now - self.started:.0f} s"
        silent = self.members - self.reported.keys()
        still = silent & set(paused)
        if self.reported and 2 * len(self.reported) >= len(self.members) - len(still):
            # Who has not reported may lack what one that stands still was to send.
            return dict.fromkeys(sorted(still or silent), reason)
        if self.finished:
            return dict.fromkeys(sorted(self.members - self.finished.keys() or still), reason)
        return {}

    def never_ends(self) -> JobFailed:
        """The error to give up with when it is not the first that stalls."""
        return JobFailed(
            f"round {self.round + 1} does not end, though it was begun {self.number + 1} times",
            cause=f"{len(self.members)} peers answer, but none finished in time",
            fix="fewer steps a round, or peers with faster links (max-rtt)",
        )

    def awaited_after(self, blamed: Collection[int]) -> set[int]:
        """Who has yet to come as far as those at which the task failed: through the steps, or to the report."""
        failed_late = all(rank in self.finished for rank in blamed)
        return set(self.members - (self.reported.keys() if failed_late else self.finished.keys()))


def told_in(event: ProgressHeard | RoundReported) -> Progress | RoundDone:
    """What the member said."""
    return event.progress if isinstance(event, ProgressHeard) else event.done


def not_begun(event: ProgressHeard | RoundReported) -> str:
    """What is wrong with it when there is no such attempt yet."""
    return f"it spoke of round {told_in(event).round + 1}, which has not begun"
