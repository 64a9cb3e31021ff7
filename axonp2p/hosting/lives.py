"""The next action for a hosted job whose process has ended, and for its copy at a second host (pure)."""

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


SHORTEST_S = 5.0
LONGEST_S = 600.0
SHARE = 16
"""The pause is this part of the time for which the copy has been kept: so much of the work is lost at the most."""
REST = 5
"""So many times as long as a copy takes, nothing is copied after it."""


def pause_before_copy(kept_s: float, took_s: float, failures: int) -> float:
    """Seconds until the next copy; the last one took so long, and so many failed in a row."""
    usual = max(SHORTEST_S, kept_s / SHARE, took_s * REST)
    return float(min(LONGEST_S, usual * 2.0 ** min(failures, 10)))
