"""How fast bytes or messages may go (pure): the owner's limit on what all jobs together send, or receive."""

from __future__ import annotations

BYTES_A_MBIT = 125_000
BURST_S = 0.25
"""So much of unused time is kept: small messages do not wait for nothing."""


class SendPace:
    """At most so many bytes a second; 0: as fast as they come."""

    def __init__(self, bytes_a_second: float) -> None:
        self._rate = bytes_a_second
        self._next = float("-inf")

    @property
    def unlimited(self) -> bool:
        """Whether nothing ever waits."""
        return not self._rate

    def wait(self, count: int, now: float) -> float:
        """How long these `count` bytes have to wait from `now` on, in seconds; what comes after them waits longer."""
        if not self._rate:
            return 0.0
        start = max(self._next, now - BURST_S)
        self._next = start + count / self._rate
        return max(0.0, start - now)
