"""How much anybody may ask (pure): a token bucket for each name, and a bounded number of buckets."""

from __future__ import annotations

from collections import OrderedDict

MOST_REMEMBERED = 8192


class Gate:
    """Token buckets by name: a network, say. Times are seconds of one clock, which may be set back."""

    def __init__(self, a_second: float, at_once: float) -> None:
        self._a_second = a_second
        self._at_once = at_once
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def lets_in(self, name: bytes, now: float) -> bool:
        """Whether one more question of `name` is answered."""
        left, since = self._buckets.pop(name, (self._at_once, now))
        left = min(self._at_once, left + max(0.0, now - since) * self._a_second)
        allowed = left >= 1.0
        self._buckets[name] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > MOST_REMEMBERED:
            # The longest unheard is full again, or was forgotten at worst a little early.
            self._buckets.popitem(last=False)
        return allowed
