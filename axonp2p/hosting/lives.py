"""What becomes of a hosted job when its process has ended (pure)."""

from __future__ import annotations

from dataclasses import dataclass

MOST_DEATHS = 5
"""In a row, without a new round or result in between."""
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0


@dataclass(frozen=True)
class Again:
    """Start it again, after so many seconds."""

    wait_s: float


@dataclass(frozen=True)
class StopTrying:
    """It would only die again."""

    deaths: int


class Lives:
    """The deaths of one job's processes, since the host began to care for it."""

    def __init__(self) -> None:
        self._deaths = 0
        self._done = -1

    def died(self, done: int) -> Again | StopTrying:
        """Its process ended though the job is not over; so many rounds or results are there by then."""
        if done > self._done >= 0:
            self._deaths = 0
        self._done = done
        self._deaths += 1
        if self._deaths >= MOST_DEATHS:
            return StopTrying(self._deaths)
        return Again(min(LONGEST_WAIT_S, FIRST_WAIT_S * 4.0 ** (self._deaths - 1)))
