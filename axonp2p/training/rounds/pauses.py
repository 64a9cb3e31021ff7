"""Members whose owners are back: who stands still, who has to go, and the job's own clock. Pure.

The others wait for a paused member no longer than for a slow one. Only when too few would be left without those that
are paused does the job itself wait: then its clock stands still, and with it every deadline, as all but the owners'
are set in this clock's seconds. An owner's deadline comes when it comes.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from axonp2p.training.round_messages import Action, EnoughAwake, JobWaits

LEAST_FETCH_S = 5.0
"""So long before the last member has to go, at the least, the state is fetched from it."""


class Pauses:
    """The wishes of owners. `least` is the fewest members that a job goes on with; `now` is monotonic seconds."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._paused: dict[int, tuple[str, float]] = {}
        self._leaving: dict[int, tuple[str, float]] = {}
        self._waiting_for: list[int] = []
        self._stopped_at = 0.0
        self._stood_still_s = 0.0

    # --- who stands still ---

    def pause(self, rank: int, reason: str, now: float) -> None:
        """The member stands still, from the first time that it is said."""
        _, since = self._paused.get(rank, ("", self.clock(now)))
        self._paused[rank] = (reason, since)

    def resume(self, rank: int) -> None:
        """The member goes on."""
        self._paused.pop(rank, None)

    def paused(self, members: Collection[int]) -> dict[int, float]:
        """Those of `members` that stand still, and since when on the job's clock."""
        return {rank: since for rank, (_, since) in self._paused.items() if rank in members}

    def why_left_out(self, rank: int) -> str:
        """The sentence on a paused member that is not waited for any longer."""
        return f"paused: {self._paused[rank][0]}"

    # --- the job's clock ---

    @property
    def job_waits(self) -> bool:
        """Whether the job's clock stands still."""
        return bool(self._waiting_for)

    def clock(self, now: float) -> float:
        """Seconds as the job counts them: those in which it waited for paused members are left out."""
        return (self._stopped_at if self._waiting_for else now) - self._stood_still_s

    def on_our_clock(self, deadline: float) -> float:
        """When a deadline on the job's clock comes, while that goes."""
        ours = deadline + self._stood_still_s
        # A sum of floats may fall short of the deadline by its last bit, and a tick then would come too early for ever.
        return ours if ours - self._stood_still_s >= deadline else math.nextafter(ours, math.inf)

    def look(self, members: Collection[int], now: float) -> list[Action]:
        """Stop the clock, or let it go on, as it now has to be."""
        paused = sorted(self.paused(members))
        waiting_for = paused if len(members) - len(paused) < self._least <= len(members) else []
        if waiting_for == self._waiting_for:
            return []
        if not self._waiting_for:
            self._stopped_at = now
        elif not waiting_for:
            self._stood_still_s += now - self._stopped_at
        self._waiting_for = waiting_for
        return [JobWaits(list(waiting_for)) if waiting_for else EnoughAwake()]

    # --- who has to go ---

    def must_leave(self, rank: int, reason: str, until: float) -> None:
        """The member's owner wants the machine back by `until`; the later word holds."""
        self._leaving[rank] = (reason, until)

    def leaving(self, members: Collection[int], by: float = float("inf")) -> dict[int, str]:
        """Those of `members` that have to go by then, and why."""
        return {
            rank: f"handed back: {reason}"
            for rank, (reason, until) in sorted(self._leaving.items())
            if rank in members and until <= by
        }

    def too_few_stay(self, members: Collection[int]) -> bool:
        """Whether the job ends when all have gone that have to."""
        return len(members) - len(self.leaving(members)) < self._least

    def owners_deadline(self, members: Collection[int], fetch_s: float) -> float | None:
        """When the next member has to be let go. `fetch_s` is what the way of a state may take."""
        leaving = self.leaving(members)
        if not leaving:
            return None
        first = min(self._leaving[rank][1] for rank in leaving)
        # When nobody stays who holds the state, it has to be fetched from one that goes.
        return first - max(LEAST_FETCH_S, fetch_s) if len(leaving) == len(members) else first
