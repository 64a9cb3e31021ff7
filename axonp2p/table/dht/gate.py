"""How many questions an address may ask (pure): a token bucket each, and a bounded number of buckets."""

from __future__ import annotations

from collections import OrderedDict

from axonp2p.table.dht.contact import network_of

A_SECOND = 100.0
AT_ONCE = 300.0
MOST_REMEMBERED = 8192


class Gate:
    """Token buckets by network (/24, IPv6 /48). Times are seconds of one clock that never goes back."""

    def __init__(self, a_second: float = A_SECOND, at_once: float = AT_ONCE) -> None:
        self._a_second = a_second
        self._at_once = at_once
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def lets_in(self, host: str, now: float) -> bool:
        """Whether one more question from `host` is answered."""
        network = network_of(host)
        tokens, since = self._buckets.pop(network, (self._at_once, now))
        tokens = min(self._at_once, tokens + (now - since) * self._a_second)
        allowed = tokens >= 1.0
        self._buckets[network] = (tokens - 1.0 if allowed else tokens, now)
        if len(self._buckets) > MOST_REMEMBERED:
            # The longest unheard is full again, or was forgotten at worst a little early.
            self._buckets.popitem(last=False)
        return allowed
