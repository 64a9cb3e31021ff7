"""Which refused jobs the history notes (pure): strangers who ask again and again fill nobody's disk."""

from __future__ import annotations

from collections import OrderedDict

SAME_AGAIN_S = 600.0
A_MINUTE = 6
_MOST_REMEMBERED = 256


class Refusals:
    """Remembers those that were noted of late."""

    def __init__(self) -> None:
        self._noted: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._minute = 0
        self._in_minute = 0

    def is_worth_noting(self, client: str, reason: str, now: float) -> bool:
        """Whether this one is news: not the same again within ten minutes, and not one of many. `now`: seconds."""
        if now - self._noted.get((client, reason), float("-inf")) < SAME_AGAIN_S:
            return False
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._in_minute = minute, 0
        if self._in_minute >= A_MINUTE:
            return False
        self._in_minute += 1
        self._noted[client, reason] = now
        self._noted.move_to_end((client, reason))
        if len(self._noted) > _MOST_REMEMBERED:
            self._noted.popitem(last=False)
        return True
