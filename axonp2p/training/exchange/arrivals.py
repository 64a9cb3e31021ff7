"""How long the owner of a slice waits for each of the others: learnt from when their values came. Pure.

A member is expected after the median of its last times, and given four times their mean deviation from it on top, as
TCP waits for an acknowledgement (Jacobson, "Congestion Avoidance and Control", 1988; RFC 6298). Deviations are about
the median, and their mean is taken, because times that cannot be below 0 lie on one side: their median would be 0.
A member that was waited for in vain counts as twice that late, so one that has become slower is waited for longer and
longer until it is heard again, and is never left out for good by what it once was.
"""

from __future__ import annotations

import statistics
from collections import deque

LEAST_S = 0.2
"""Nobody is waited for less: machines and lines hesitate."""
REMEMBERED = 8
"""Exchanges: few, as the coding and the number of local steps change during a job."""
DEVIATIONS = 4.0
LATER = 2.0


class ArrivalTimes:
    """When the values of each member were complete, in seconds after the exchange had begun for this one."""

    def __init__(self) -> None:
        self._heard: dict[int, deque[float]] = {}

    def heard(self, rank: int, seconds_after_own: float) -> None:
        """The last values of a member have come."""
        self._heard.setdefault(rank, deque(maxlen=REMEMBERED)).append(max(0.0, seconds_after_own))

    def missed(self, rank: int, waited: float) -> None:
        """The others went on without a member after having waited so many seconds."""
        self.heard(rank, LATER * max(waited, LEAST_S))

    def deadline_after(self, rank: int, patience: float) -> float:
        """How many seconds after the own beginning a member is not waited for any more.

        At most `patience`, which it also is for a member that was not heard yet.
        """
        times = self._heard.get(rank)
        if not times:
            return patience
        usual = statistics.median(times)
        spread = statistics.fmean(abs(time - usual) for time in times)
        return min(patience, usual + max(LEAST_S, DEVIATIONS * spread))
