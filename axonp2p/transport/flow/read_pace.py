"""Reading a busy line a hundred times a second, not once for each packet. Pure.

A reading costs a program more than its bytes do: where 100 Mbit/s come in packets of 9 kB, a quarter
of what a daemon did was to wake up. So after a reading from a line that brings much, nothing is read for as long as it
takes to bring more, as network cards put off interrupts. A quiet line is read at once, and so is a very fast one.
"""

from __future__ import annotations

WISHED_BYTES = 64 * 1024
"""For one reading."""
MUCH_BYTES = 4 * WISHED_BYTES
"""As much as one reading may bring: there is more."""
BUSY = 500_000.0
"""Bytes a second from which on a line is busy."""
WINDOW_S = 0.05
"""Over so long, or a little longer, a line's pace is measured."""
LONGEST_S, SHORTEST_S = 0.01, 0.001
"""Of pauses: so long may a word wait that comes amid bulk; a shorter one is not worth its timer."""


class ReadPace:
    """How long to wait between two readings of one line. Times are seconds on any clock."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._came = 0
        self._pace = 0.0
        """Bytes a second, in the window before this one."""

    def pause(self, count: int, now: float) -> float:
        """For how long to read nothing after a reading that brought `count` bytes; 0 to go on at once."""
        passed = now - self._since
        if passed >= WINDOW_S:
            self._pace = self._came / passed
            self._since, self._came = now, 0
        self._came += count
        if self._pace < BUSY or count >= MUCH_BYTES:
            return 0.0
        wait = min(LONGEST_S, WISHED_BYTES / self._pace)
        return wait if wait >= SHORTEST_S else 0.0
