"""Until when each peer has to answer an order: a peer that says nothing must not hold up a job for ever. Pure."""

from __future__ import annotations

import math

ANSWER_S = 60.0
"""For so long a peer may be silent that was told something, or that sends files: a worker answers at once."""
LEAST_BYTES_S = 8 * 1024
"""How fast files come at least, from all that send some together: the client's line may be the slow one."""


class AnswersDue:
    """By rank. While its owner lets a peer stand still, nothing is due from it."""

    def __init__(self) -> None:
        self._due: dict[int, tuple[float, float]] = {}
        """When, and how many seconds it had."""
        self._files_due: dict[int, float] = {}
        """When all files of those that send some have to be here, if no more of them comes until then."""
        self._paused: dict[int, float] = {}
        """Since when."""

    def asked(self, rank: int, now: float, within: float = ANSWER_S) -> None:
        """It has to say something, in so many seconds."""
        self._due[rank] = (now + within, within)

    def asked_for_files(self, rank: int, now: float) -> None:
        """It has to send its files: it may not be silent, and each byte gives it a little more time for the others."""
        self.asked(rank, now)
        self._files_due[rank] = self._paused.get(rank, now) + ANSWER_S

    def came(self, rank: int, now: float, size: int) -> None:
        """So many bytes of its files."""
        self._goes_on(rank, now)
        if rank in self._files_due:
            self._files_due[rank] += size * len(self._files_due) / LEAST_BYTES_S

    def answered(self, rank: int) -> None:
        """It has."""
        self._due.pop(rank, None)
        self._files_due.pop(rank, None)

    def gone(self, rank: int) -> None:
        """Nothing is due from it; should it come back, its owner's word is a new one."""
        self.answered(rank)
        self._paused.pop(rank, None)

    def paused(self, rank: int, now: float) -> None:
        """Its owner needs the machine."""
        self._paused.setdefault(rank, now)

    def resumed(self, rank: int, now: float) -> None:
        """It goes on."""
        since = self._paused.pop(rank, now)
        self._goes_on(rank, now)
        if rank in self._files_due:
            self._files_due[rank] += now - since

    def late(self, now: float) -> list[tuple[int, str]]:
        """Those whose time is over, and why they go."""
        return sorted((rank, self._why(rank, now)) for rank in self._due if self._moment(rank) <= now)

    def next_deadline(self) -> float | None:
        """When to look again if nothing else happens."""
        deadline = min(map(self._moment, self._due), default=math.inf)
        return None if deadline == math.inf else deadline

    def _goes_on(self, rank: int, now: float) -> None:
        if due := self._due.get(rank):
            self.asked(rank, now, due[1])

    def _moment(self, rank: int) -> float:
        if rank in self._paused:
            return math.inf
        return min(self._due[rank][0], self._files_due.get(rank, math.inf))

    def _why(self, rank: int, now: float) -> str:
        moment, within = self._due[rank]
        return f"it was silent for {within:g} s" if moment <= now else "its files came too slowly"
