"""What strangers sent ahead and nobody has taken yet: bounded for one household and in all, over all sessions (pure).

Each session has a window of its own; hundreds of windows are more than a machine has. The bound is one of memory, so
whose session goes is decided by bytes alone: of the source that holds most, the session that holds most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

H = TypeVar("H", bound=Hashable)


class WaitingBytes(Generic[H]):
    """Bytes by holder and source."""

    def __init__(self, of_source: int, in_all: int) -> None:
        self._most_of_source = of_source
        self._most_in_all = in_all
        self._held: dict[H, tuple[str, int]] = {}
        self._of_source: Counter[str] = Counter()
        self._in_all = 0

    def holds(self, holder: H, source: str, count: int) -> H | None:
        """That holder has so many bytes now; the one that must let go of all of its own, if any must."""
        more = count - self._held.get(holder, (source, 0))[1]
        self._held[holder] = (source, count)
        self._of_source[source] += more
        self._in_all += more
        if more <= 0:
            return None
        if self._of_source[source] > self._most_of_source:
            return self._largest(source)
        if self._in_all > self._most_in_all:
            return self._largest(max(self._of_source, key=self._of_source.__getitem__))
        return None

    def release(self, holder: H) -> None:
        """It holds nothing any more. Harmless when it held nothing."""
        source, count = self._held.pop(holder, ("", 0))
        self._of_source[source] -= count
        self._in_all -= count
        if not self._of_source[source]:
            del self._of_source[source]

    def _largest(self, source: str) -> H:
        return max((one for one, held in self._held.items() if held[0] == source), key=lambda one: self._held[one][1])
