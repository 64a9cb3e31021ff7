"""How long those may take who do steps again, learnt from how long it took before. Pure."""

from __future__ import annotations

from collections import deque

from axonp2p.training.deadlines import SLOWEST_BYTES_S, late_after
from axonp2p.verification.own_proofs import OWN_SEGMENTS

MOST_S = 300.0
"""Whoever is asked is not waited for longer than this, beside what the way of a place may take."""
UNKNOWN_S = 30.0
"""At the end of a job in which nobody has answered yet."""
LONGEST_FACTOR = 2.0
"""At the end of a job: so many times what the slowest of them took. Then nobody trains any more, so all are quicker."""
HAND_OVER_S = 30.0
"""Who takes longer than this, and the way at `SLOWEST_BYTES_S`, to hand over what it committed to has not done so."""
KEPT = 32
IN_TURN = 3 + OWN_SEGMENTS
"""So many answers come one after the other before somebody is convicted: of two who are led elsewhere, and of the
accused about the steps of another, and about its own."""


def hand_over_s(size: int) -> float:
    """How long so many bytes may take from one member to another, beside a round's own traffic."""
    return HAND_OVER_S + size / SLOWEST_BYTES_S


class AnswerTimes:
    """Those of one job: seconds from each question to its answer."""

    def __init__(self) -> None:
        self._took: deque[float] = deque(maxlen=KEPT)

    def note(self, seconds: float) -> None:
        """Somebody has done steps again within so many seconds."""
        self._took.append(seconds)

    def at_the_end(self, size: int) -> float:
        """Seconds for one who is asked when all rounds are trained, about steps that begin from so many bytes.

        Never less than the way of these may take: to wait for less would excuse who does not hand them over.
        """
        usual = max(late_after(self._took), LONGEST_FACTOR * max(self._took)) if self._took else UNKNOWN_S
        return min(MOST_S, usual) + hand_over_s(size)
