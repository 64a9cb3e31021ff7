"""When other programs' use of the CPU is a reason to wait, and when it no longer is (pure).

One look is half a second. A page that loads is no reason to stop, a compiler is. So jobs stop after two looks over the
limit or one far over it, and go on by the average of the last seconds: a short burst then does not make them wait anew,
or a machine whose mail program wakes up every ten seconds would never work.
"""

from __future__ import annotations

import math

_AVERAGE_S = 3.0
_LOOKS = 2
RESUME_BELOW = 0.8
"""Of a limit: jobs go on below it."""


class OtherPrograms:
    """What other programs used, remembered as far as it matters."""

    def __init__(self) -> None:
        self._average = 0.0
        self._looks_over = 0
        self._last: float | None = None

    def look(self, now: float, share: float, limit: float) -> None:
        """`share` of all cores was used since the last look; `now` is monotonic, in seconds."""
        passed = _AVERAGE_S * 4 if self._last is None else max(0.0, now - self._last)
        self._last = now
        self._average += (share - self._average) * (1 - math.exp(-passed / _AVERAGE_S))
        self._looks_over = self._looks_over + 1 if share > limit else 0

    def stops(self, share: float, limit: float) -> bool:
        """Whether jobs that run are to stop; `share` is that of the last look."""
        far_over = min(2 * limit, (1 + limit) / 2)
        return limit < 1 and (self._looks_over >= _LOOKS or (share > limit and share >= far_over))

    def keeps(self, limit: float) -> float | None:
        """The average, if it is too much for jobs that wait to go on."""
        return self._average if limit < 1 and self._average >= RESUME_BELOW * limit else None
