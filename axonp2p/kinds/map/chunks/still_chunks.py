"""Which chunks stand still, so that they are copied, and which ones wait behind others, so that they may be taken back.

Pure. A running chunk is never moved, only copied: Dask's work stealing moved a task 45 times and lost others; a copy
cannot be lost.
"""

from __future__ import annotations

import math

from axonp2p.client.run.standing_still import Durations, stands_still_from
from axonp2p.kinds.map.chunks.live_chunks import ANSWER_S, LiveChunk, LiveChunks
from axonp2p.kinds.map.chunks.waiting_items import WaitingItems


class StillChunks:
    """Among `chunks`. Those whose calls another chunk has as well count no more."""

    def __init__(self, chunks: LiveChunks, items: WaitingItems) -> None:
        self._chunks = chunks
        self._items = items
        self._durations = Durations()

    def took(self, calls: int, seconds: float) -> None:
        """A chunk has come to its end."""
        self._durations.add(seconds / calls)

    def now(self, now: float) -> list[LiveChunk]:
        """Those that stand still, the first one first."""
        still = [(moment, chunk.number, chunk) for moment, chunk in self._moments() if moment <= now]
        return [chunk for _, _, chunk in sorted(still, key=lambda one: one[:2])]

    def next_deadline(self, now: float) -> float | None:
        """When the next one does."""
        deadline = min((moment for moment, _ in self._moments() if moment > now), default=math.inf)
        return None if deadline == math.inf else deadline

    def behind(self) -> list[LiveChunk]:
        """Those that wait for a core of their peer, where most do first."""
        return [
            chunk
            for rank in self._chunks.crowded()
            for chunk in reversed(self._chunks.at(rank))
            if chunk.begun is None and chunk.asked == math.inf and self._is_alone(chunk)
        ]

    def _moments(self) -> list[tuple[float, LiveChunk]]:
        return [(self._still_from(chunk), chunk) for chunk in self._chunks.all if self._is_alone(chunk)]

    def _is_alone(self, chunk: LiveChunk) -> bool:
        """Whether no other chunk has its calls. One that was copied shares the first that is left."""
        first = next((item for item in chunk.left if not self._items.is_done(item)), None)
        return first is not None and not chunk.stopped and self._items.chunks_of(first) == 1

    def _still_from(self, chunk: LiveChunk) -> float:
        rank, chunks = chunk.rank, self._chunks
        if rank in chunks.silent or rank in chunks.aside:
            return -math.inf
        paused, leaving = chunks.paused.get(rank), rank in chunks.leaving
        if leaving or chunk.begun is not None:
            too_long = self._durations.too_long(len(chunk.items))
            return stands_still_from(chunk.begun or 0.0, too_long, paused, leaving=leaving)
        # One that waits stands still with those before it, or when it is not begun or not given back as it should be.
        running = [other for other in chunks.at(rank) if other.begun is not None and not other.stopped]
        before = min((self._still_from(other) for other in running), default=math.inf)
        late = self._late_from(chunk) if chunks.has_free_core(rank) else math.inf
        return min(before, late, chunk.not_back_from, stands_still_from(math.inf, 0.0, paused, leaving=False))

    def _late_from(self, chunk: LiveChunk) -> float:
        too_long = self._durations.too_long(len(chunk.items))
        may_begin = max(chunk.sent, self._chunks.freed.get(chunk.rank, chunk.sent))
        return may_begin + (ANSWER_S if too_long == math.inf else max(ANSWER_S, too_long))
