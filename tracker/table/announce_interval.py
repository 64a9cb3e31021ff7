"""How often peers shall announce themselves (pure): the rule, or more slowly when the tracker has much to do."""

from __future__ import annotations

import math

from axonp2p.table.records import LEAST_AGAIN_S, MOST_AGAIN_S

ANNOUNCES_A_SECOND = 833.0
"""The load that a tracker means to bear: a million peers at the longest interval."""
BUSY = 0.5
"""The share of a core above which it asks for patience."""
_SETTLES_S = 60.0


class AnnounceInterval:
    """The interval of one tracker. `rule` is what its settings say, in seconds."""

    def __init__(self, rule: float) -> None:
        self._rule = rule
        self._alive = 0
        self._busy = 0.0
        self._last: tuple[float, float] | None = None
        self.again_in = self._wanted()
        """Seconds until a peer shall announce itself again."""

    def worked(self, now: float, processor_s: float, alive: int) -> None:
        """At `now` (of a clock that never goes back) so much processor time had been used, in seconds; so many live."""
        self._alive = alive
        if self._last is not None and now > self._last[0]:
            passed = now - self._last[0]
            share = (processor_s - self._last[1]) / passed
            self._busy += (share - self._busy) * (1 - math.exp(-passed / _SETTLES_S))
        self._last = (now, processor_s)
        self.again_in = self._wanted()

    def _wanted(self) -> float:
        wanted = max(self._rule, self._alive / ANNOUNCES_A_SECOND)
        # Peers answer to a new interval only when the old one is over. The root keeps that from swinging.
        wanted *= math.sqrt(max(1.0, self._busy / BUSY))
        return min(max(wanted, LEAST_AGAIN_S), MOST_AGAIN_S)
