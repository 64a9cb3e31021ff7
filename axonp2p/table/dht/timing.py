"""How long to wait for a DHT node: from what it, and all others, took before (pure).

Smoothed round trips after RFC 6298; silent addresses rest, each time twice as long.
"""

from __future__ import annotations

HARD_LIMIT_S = 1.5
"""After this a request has failed."""

Address = tuple[str, int]


class Timing:
    """Round trips by address and over all. Times are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        raise NotImplementedError

    def answered(self, address: Address, rtt: float | None) -> None:
        """It answered after `rtt` seconds; None when the request was sent twice, and nobody knows to which it answered."""
        raise NotImplementedError

    def silent(self, address: Address, now: float) -> None:
        """It let the hard limit pass: it rests for 60 s, then 120 s, 240 s, at most an hour."""
        raise NotImplementedError

    def rests(self, address: Address, now: float) -> bool:
        """Whether it is better not to ask it."""
        raise NotImplementedError

    def soft_limit(self, address: Address) -> float:
        """Seconds after which to send again and to ask somebody else beside; 0.05 to 1."""
        raise NotImplementedError

    def round_trip(self, address: Address) -> float | None:
        """Its smoothed round trip in seconds, if it answered before."""
        raise NotImplementedError
