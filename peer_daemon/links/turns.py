"""The turns of the links on this machine's line, and how fast each may go (pure).

All links share it by bytes, within the owner's limit. Only bulk waits here; words are few. Each lane has at most one
frame waiting, and the next to go is that of the lane that was served least (start-time fair queueing: Goyal, Vin and
Cheng 1996). A lane that was idle gets nothing for it.
"""

from __future__ import annotations

from collections.abc import Hashable

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


class Turns:
    """The frames of all lanes that wait for the line."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[float, int]] = {}
        self._ends: dict[Hashable, float] = {}
        self._served = 0.0
        self._last = 0

    def ask(self, lane: Hashable, count: int) -> int:
        """One more frame, of so many bytes; returns its number."""
        starts = max(self._served, self._ends.get(lane, 0.0))
        self._ends[lane] = starts + count
        self._last += 1
        self._waiting[self._last] = (starts, count)
        return self._last

    def forget(self, number: int) -> None:
        """That frame goes no more; harmless when it has gone."""
        self._waiting.pop(number, None)

    def next(self) -> tuple[int, int] | None:
        """Number and bytes of the frame that goes next; None when none waits."""
        if not self._waiting:
            self._ends.clear()
            return None
        number = min(self._waiting, key=lambda number: (self._waiting[number][0], number))
        self._served, count = self._waiting.pop(number)
        return number, count
