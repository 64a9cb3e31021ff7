"""How often a peer announces itself, and how much of that its trackers decide (pure).

A tracker may ask for patience, never for haste; one that is only learnt cannot shorten anything and is not pinged. What
others say of this peer (its address, whether it can be dialled, that a relay has it) changes the row and is announced
at once, but only so often: a tracker that says something else each time would keep the peer busy with announces to all.
"""

from __future__ import annotations

from axonp2p.table.records import LEAST_AGAIN_S, LEAST_PING_S, MOST_AGAIN_S, Announced

EVERY_S = 300.0
"""How often a row is announced when no trusted tracker has said how often it wants one."""
CHANGES_AT_ONCE = 8
"""A peer that starts learns its address, whether it can be dialled, and its relays, all within seconds."""
CHANGE_EVERY_S = 30.0


def again_in(told: Announced, *, trusted: bool) -> float:
    """Seconds until a tracker is to have the row again."""
    wanted = min(max(told.again_in, LEAST_AGAIN_S), MOST_AGAIN_S)
    return wanted if trusted else max(wanted, EVERY_S)


def ping_in(told: Announced, *, trusted: bool) -> float:
    """Seconds between two looks whether a tracker lives; 0 for none."""
    return max(told.ping_in, LEAST_PING_S) if trusted and told.ping_in else 0.0


class ChangeLimit:
    """How many changes that others bring about are announced at once. Times are Unix seconds."""

    def __init__(self) -> None:
        self._left = float(CHANGES_AT_ONCE)
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Whether one may be announced now; it counts."""
        passed = 0.0 if self._at is None else max(0.0, now - self._at)  # the clock may have been put back
        self._at = now
        self._left = min(CHANGES_AT_ONCE, self._left + passed / CHANGE_EVERY_S)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def wait(self) -> float:
        """Seconds from the last `take` until one may be announced."""
        return max(0.0, (1 - self._left) * CHANGE_EVERY_S)
