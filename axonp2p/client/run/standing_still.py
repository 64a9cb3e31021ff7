"""When work is begun a second time elsewhere, because it stands still where it is. Pure.

A peer that stands still says nothing of it, so the measure is the others' time: the 75th percentile, as Spark and
MapReduce have it, because copies of one command, or calls of one function, mostly take alike.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque

LONGER = 1.5
"""Times the 75th percentile of those that ended well."""
LEAST_S = 2.0
PAUSED_S = 5.0
"""For so long the owner of its peer may pause it."""
MOST_MEASURED = 4096
"""The newest of them count."""


class Durations:
    """How long work took that ended well, in seconds."""

    def __init__(self) -> None:
        self._newest: deque[float] = deque(maxlen=MOST_MEASURED)
        self._sorted: list[float] = []

    def add(self, seconds: float) -> None:
        """One more."""
        if len(self._newest) == MOST_MEASURED:
            del self._sorted[bisect_left(self._sorted, self._newest[0])]
        self._newest.append(seconds)
        insort(self._sorted, seconds)

    def too_long(self, units: int = 1) -> float:
        """The seconds after which so many units that still run stand still; infinite while none has ended."""
        if not self._sorted:
            return math.inf
        percentile = self._sorted[math.ceil(0.75 * len(self._sorted)) - 1]
        return max(LONGER * percentile * units, LEAST_S)


def stands_still_from(began: float, too_long: float, paused_since: float | None, *, leaving: bool) -> float:
    """The moment from which this work counts as standing still; infinite: none."""
    if leaving:
        return began
    paused = math.inf if paused_since is None else paused_since + PAUSED_S
    return min(began + too_long, paused)
