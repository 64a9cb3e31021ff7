"""Time, passed in: nothing that decides reads the machine's clock by itself.

`now()` is wall-clock Unix time in seconds, for what strangers compare (rows, tokens, receipts).
`monotonic()` never goes back, for deadlines and durations.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Unix time in seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds from an unknown start, never going back."""
        ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
