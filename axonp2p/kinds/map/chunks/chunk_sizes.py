"""How many calls a chunk has, for each peer: as many as take about a second there. Pure.

It begins with one call and doubles or halves with what chunks of that size take, so that 2,000 empty calls do not cost
2,000 round trips, and a call of an hour is alone in its chunk. When few calls wait, all cores share them.
"""

from __future__ import annotations

from collections import OrderedDict

from axonp2p.kinds.map.messages import MOST_CALLS

SHORT_S, LONG_S = 0.5, 2.0
"""A chunk that took less gets twice as many calls next time; one that took more, half as many."""
MOST_GROUPS = 256
"""Of each peer: a program may make each of its calls of a function of its own."""


class ChunkSizes:
    """By rank and group of calls: calls of another function take another time."""

    def __init__(self, fixed: int) -> None:
        self._fixed = fixed
        self._sizes: dict[int, OrderedDict[int, int]] = {}

    def took(self, rank: int, group: int, calls: int, seconds: float) -> None:
        """A chunk of that peer is over. Those of an earlier, other size say nothing."""
        sizes = self._sizes.setdefault(rank, OrderedDict())
        size = sizes.get(group, 1)
        if seconds < SHORT_S and calls >= size:
            sizes[group] = min(2 * calls, MOST_CALLS)
        elif seconds > LONG_S and calls <= size:
            sizes[group] = max(1, calls // 2)
        if len(sizes) > MOST_GROUPS:
            sizes.popitem(last=False)

    def forget(self, rank: int) -> None:
        """It has gone."""
        self._sizes.pop(rank, None)

    def next(self, rank: int, group: int, waiting: int, places: int) -> int:
        """Calls for that peer's next chunk, while so many wait for so many places of chunks at all peers."""
        if self._fixed:
            return self._fixed
        share = -(-waiting // max(1, places))
        known = self._sizes.get(rank, OrderedDict[int, int]()).get(group)
        if known is None:
            # One that has just come is no faster than the slowest, as far as anybody knows.
            known = min((sizes[group] for sizes in self._sizes.values() if group in sizes), default=1)
        return max(1, min(known, share))
