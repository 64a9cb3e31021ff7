"""How much one address may ask (pure): a token bucket for each, forgotten once it is full again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from axonp2p.errors import TooOften
from axonp2p.transport.address import source_of

REQUESTS_A_SECOND = 200.0
BURST = 1000.0
MOST_BUCKETS = 65536
"""How many addresses are remembered; over that, the one seen longest ago is forgotten."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimit:
    """Buckets by source. Times are seconds of one clock; while it is set back nothing is added."""

    def __init__(
        self, a_second: float = REQUESTS_A_SECOND, burst: float = BURST, most_buckets: int = MOST_BUCKETS
    ) -> None:
        self._a_second = a_second
        self._burst = burst
        self._most_buckets = most_buckets
        # In the order in which sources were seen. A plain dict would look for its first key past all that were dropped.
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, address: str, now: float, cost: float = 1.0) -> None:
        """Count one request of `address`. Raises `TooOften` with the seconds to wait when it asks too much."""
        self.charge(source_of(address), now, cost)

    def charge(self, source: str, now: float, cost: float = 1.0) -> None:
        """The same for a source by any other name, such as a key."""
        bucket = self._bucket(source, now)
        if bucket.left < cost:
            wait = (cost - bucket.left) / self._a_second
            raise TooOften(f"too many requests from {source}", fix=f"ask again in {wait:.1f} s", wait_s=wait)
        bucket.left -= cost

    def allows(self, source: str, now: float) -> bool:
        """Count one request of a source, unless it asks too much."""
        bucket = self._bucket(source, now)
        allowed = bucket.left >= 1
        bucket.left -= allowed
        return allowed

    def debit(self, source: str, now: float, cost: float) -> None:
        """Count what has been done already, also where less is left: a debt, of `cost` at the most."""
        bucket = self._bucket(source, now)
        bucket.left = max(-cost, bucket.left - cost)

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that are full again: they say no more than none."""
        full = [
            source
            for source, bucket in self._buckets.items()
            if bucket.left + (now - bucket.at) * self._a_second >= self._burst
        ]
        for source in full:
            del self._buckets[source]

    def _refund(self, source: str, cost: float) -> None:
        bucket = self._buckets.get(source)
        if bucket is not None:
            bucket.left = min(self._burst, bucket.left + cost)

    def _bucket(self, source: str, now: float) -> _Bucket:
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets[source] = _Bucket(self._burst, now)
            if len(self._buckets) > self._most_buckets:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(source)
            bucket.left = min(self._burst, bucket.left + max(0.0, now - bucket.at) * self._a_second)
            bucket.at = now
        return bucket


def charge_all(charges: Sequence[tuple[RateLimit, str, float]], now: float) -> None:
    """Count each of these limits, sources and costs, or none of them. Raises `TooOften`, as `charge` does."""
    for index, (limit, source, cost) in enumerate(charges):
        try:
            limit.charge(source, now, cost)
        except TooOften:
            for before, whose, counted in charges[:index]:
                before._refund(whose, counted)
            raise
