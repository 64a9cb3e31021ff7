"""Until when each peer has to answer an order: a peer that says nothing must not hold up a job for ever. Pure."""

from __future__ import annotations

import math

ANSWER_S = 60.0
"""For so long a peer may be silent that was told something, or that sends files: a worker answers at once."""


class AnswersDue:
    """By rank. While its owner lets a peer stand still, nothing is due from it."""

    def __init__(self) -> None:
        self._due: dict[int, tuple[float, float]] = {}
        """When, and how many seconds it had."""
        self._paused: set[int] = set()

    def asked(self, rank: int, now: float, within: float = ANSWER_S) -> None:
        """It has to say something, in so many seconds."""
        self._due[rank] = (math.inf if rank in self._paused else now + within, within)

    def goes_on(self, rank: int, now: float) -> None:
        """It has said a part of it."""
        if due := self._due.get(rank):
            self.asked(rank, now, due[1])

    def answered(self, rank: int) -> None:
        """It has, or it has gone."""
        self._due.pop(rank, None)

    def paused(self, rank: int) -> None:
        """Its owner needs the machine."""
        self._paused.add(rank)
        self.goes_on(rank, 0.0)

    def resumed(self, rank: int, now: float) -> None:
        """It goes on."""
        self._paused.discard(rank)
        self.goes_on(rank, now)

    def late(self, now: float) -> list[tuple[int, float]]:
        """Those that have been silent for too long, and for how many seconds."""
        return sorted((rank, within) for rank, (moment, within) in self._due.items() if moment <= now)

    def next_deadline(self) -> float | None:
        """When to look again if nothing else happens."""
        deadline = min((moment for moment, _ in self._due.values()), default=math.inf)
        return None if deadline == math.inf else deadline
