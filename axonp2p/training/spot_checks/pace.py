"""How far apart marks are, by what they cost: farther where steps are so fast that marks would take their time. Pure.

The members report the cost of a mark: seconds of their trainers; the time that its bytes take to be hashed, beside the
trainer, is added. The longest segments stay the longest that can be checked (`SEGMENT_STEPS`), and a leg has two marks
at least; so with very fast steps marks cost more than `SHARE` all the same.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Collection

from axonp2p.verification.claims import RoundDone
from axonp2p.verification.rates import SEGMENT_STEPS

SHARE = 0.03
"""Of the time that steps take."""
HASH_BYTES_S = 3e9
"""The speed of BLAKE3 on most processors that are lent."""
ROUNDS_KEPT = 4
ROUNDS_NEEDED = 2
"""Before anything is believed: first steps and first marks are slow."""


class MarkPace:
    """Of one job. Segments only become longer, so that one busy moment does not change them to and fro."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._costs: deque[float] = deque(maxlen=ROUNDS_KEPT)
        self._least = 0

    def note(self, reports: Collection[RoundDone]) -> None:
        """Take in the words of members on a round that counts."""
        costs = [self._cost(report) for report in reports if report.marks and report.train_seconds > 0]
        if costs:
            self._costs.append(statistics.median_low(costs))

    def widen(self, every: int, leg: int) -> int:
        """Steps of a segment in legs of so many, where memory allows one every so many."""
        if not every or len(self._costs) < ROUNDS_NEEDED:
            return every
        cost = min(self._costs)
        cheap = (length for length in SEGMENT_STEPS if (-(-leg // length) + 1) * cost <= SHARE * leg)
        self._least = max(self._least, next(cheap, SEGMENT_STEPS[-1]))
        return min(max(every, self._least), leg)

    def _cost(self, report: RoundDone) -> float:
        """The time of a mark, in steps."""
        marks = len(report.marks)
        marking = report.mark_seconds / marks + max(mark.size for mark in report.marks) / HASH_BYTES_S
        stepping = (report.train_seconds - report.mark_seconds) * self._batch / max(1, report.samples)
        return marking / stepping if stepping > 0 else float("inf")
