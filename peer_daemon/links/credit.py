"""How much a worker may still say to one receiver (pure): what `sandbox.messages.MayTell` promises, kept count of.

Words of a worker that its receiver's line has not taken yet lie in this daemon's memory. So it is lent a window,
small at first. Whenever the line has taken everything while the worker had little credit left, the line is faster
than the window allows: it is doubled, as far as the windows of the lease may grow together.
"""

from __future__ import annotations

from axonp2p.errors import MalformedMessage

FIRST_BYTES = 512 * 1024
MOST_BYTES = 4 * 1024 * 1024
"""The window of a receiver at the beginning, and at most."""
GROWN_BYTES = 16 * (MOST_BYTES - FIRST_BYTES)
"""By so much the windows of one lease may grow together: those of 16 receivers to the most."""


class WindowGrowth:
    """How far the windows of one lease may still grow, all together. What was taken of it never comes back: a worker
    keeps the credit that it was granted."""

    def __init__(self, most: int = GROWN_BYTES) -> None:
        self._left = most

    def take(self, wished: int) -> int:
        """By how much a window that wishes to grow by so many bytes grows."""
        grown = min(wished, self._left)
        self._left -= grown
        return grown


class FlowCredit:
    """Of one receiver. Each grant that a method returns must be told to the worker."""

    def __init__(self, growth: WindowGrowth) -> None:
        """`growth` is of all receivers of a lease."""
        self._growth = growth
        self._window = FIRST_BYTES
        self._left = 0
        self._waiting = 0

    def first(self) -> int:
        """There is a new line to the receiver, on which nothing waits: the credit to grant now, 0 for none."""
        self._waiting = 0
        return self._grant(FIRST_BYTES)

    def said(self, count: int) -> None:
        """The worker said so many bytes, which wait for the line now. Raises `MalformedMessage` without credit."""
        self.dropped(count)
        self._waiting += count

    def dropped(self, count: int) -> None:
        """The worker said so many bytes to a receiver that is out of reach. Raises `MalformedMessage` as well."""
        if self._left <= 0:
            raise MalformedMessage("the worker says more than it has credit for")
        self._left -= count

    def went(self, count: int) -> int:
        """The line took so many bytes: the credit to grant now, 0 for none."""
        self._waiting = max(0, self._waiting - count)  # the last of a line that was replaced may come late
        if not self._waiting and self._left < self._window // 2:
            self._window += self._growth.take(min(self._window, MOST_BYTES - self._window))
        owed = self._window - self._left - self._waiting
        # In a few large portions: each is a message.
        return self._grant(self._window) if owed >= self._window // 2 else 0

    def _grant(self, window: int) -> int:
        more = max(0, window - self._left - self._waiting)
        self._left += more
        return more
