"""Which receipts a peer is asked for after it refused one (pure).

A peer signs its receipts in the order of their numbers, so one that it refuses, for want of room on its disk say, keeps
back all that follow. Asking on would only be refused again: after a pause the oldest is asked for alone, and once that
is signed all the others, in order.
"""

from __future__ import annotations

import enum

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0
"""Between a refusal and the next try; doubled with each refusal until a receipt is signed."""


class _State(enum.Enum):
    FLOWING = enum.auto()
    """Each receipt is asked for as it is written."""
    PAUSED = enum.auto()
    """One was refused. Others on their way are refused as well, which says nothing new."""
    PROBING = enum.auto()
    """The oldest was asked for alone."""


class SignatureAsking:
    """One peer's, under one lease."""

    def __init__(self) -> None:
        self.refusal = ""
        """Why the oldest open receipt was refused; empty when it was not."""
        self._state = _State.FLOWING
        self._pause = FIRST_PAUSE_S

    @property
    def flows(self) -> bool:
        """Whether a new receipt is asked for at once; else its turn comes."""
        return self._state is _State.FLOWING

    def refused(self, reason: str) -> float | None:
        """The peer refused one: after how many seconds the oldest is asked for again; None: that is under way."""
        if self._state is _State.PAUSED:
            return None
        self._state, self.refusal = _State.PAUSED, reason
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE_S)
        return pause

    def try_again(self) -> bool:
        """The pause is over: whether the oldest is to be asked for alone now."""
        if self._state is not _State.PAUSED:
            return False
        self._state = _State.PROBING
        return True

    def signed(self) -> bool:
        """The peer signed one: whether all that are open are to be asked for now, in order."""
        if self._state is not _State.PROBING:
            return False
        self._state, self.refusal, self._pause = _State.FLOWING, "", FIRST_PAUSE_S
        return True
