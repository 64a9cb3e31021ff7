"""The next work of peers with room: calls that wait, chunks behind others, copies of what stands still. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from axonp2p.kinds.map.chunks.call_failures import CallFailures
from axonp2p.kinds.map.chunks.chunk_sizes import ChunkSizes
from axonp2p.kinds.map.chunks.live_chunks import LiveChunk, LiveChunks
from axonp2p.kinds.map.chunks.still_chunks import StillChunks
from axonp2p.kinds.map.chunks.waiting_items import WaitingItems
from axonp2p.kinds.map.messages import MOST_CALLS
from axonp2p.kinds.map.opinions.open_items import MOST_AWAITED, OpenItems
from axonp2p.kinds.map.queue_actions import QueuePlan

MOST_CHUNK_BYTES = 512 * 1024
"""The bytes that the calls of a chunk may take of its message; one call may take more."""


class NextChunks:
    """The queue puts into `chunks` and `items` what it makes of each answer before it asks for the next one."""

    def __init__(
        self,
        plan: QueuePlan,
        items: WaitingItems,
        chunks: LiveChunks,
        failures: CallFailures,
        opinions: OpenItems,
    ) -> None:
        self._plan = plan
        self._items = items
        self._chunks = chunks
        self._failures = failures
        self._opinions = opinions
        self._sizes = ChunkSizes(plan.chunk)
        self._still = StillChunks(chunks, items)

    def took(self, chunk: LiveChunk, seconds: float) -> None:
        """A chunk has come to its end."""
        self._sizes.took(chunk.rank, self._plan.group(chunk.items[0]), len(chunk.items), seconds)
        self._still.took(len(chunk.items), seconds)

    def forget(self, rank: int) -> None:
        """That peer is gone."""
        self._sizes.forget(rank)

    def first(self) -> tuple[int, tuple[int, ...]] | None:
        """Calls that wait, for the peer that has least of those with room."""
        if waiting := self._items.waiting:
            for rank in sorted(self._chunks.able(), key=self._emptiest):
                if self._chunks.load(rank) >= 2:
                    break
                if items := self._take(rank, waiting, self._chunks.places):
                    return rank, tuple(items)
        return None

    def wanted_back(self, now: float) -> list[LiveChunk]:
        """Chunks that wait behind others, for cores that have nothing."""
        able = self._chunks.able()
        coming_back = sum(now < chunk.not_back_from < math.inf for chunk in self._chunks.all)
        wanted = sum(map(self._chunks.idle, able)) - coming_back
        if wanted <= 0:
            return []
        idle = [rank for rank in able if self._chunks.idle(rank)]
        # One that nobody else may take would be given out again to its own peer, and so on.
        useful = (
            chunk for chunk in self._still.behind() if any(self._may_take(rank, i) for rank in idle for i in chunk.left)
        )
        return [chunk for _, chunk in zip(range(wanted), useful, strict=False)]

    def copies(self, now: float) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """For each chunk that stands still: the peer that gets a copy, the calls that are left, and where they are."""
        if not self._may_copy:
            return
        for slow in self._still.now(now):
            left = tuple(item for item in slow.left if not self._items.is_done(item))
            able = [
                rank
                for rank in self._chunks.able()
                if rank != slow.rank
                and self._chunks.idle(rank)
                and not self._failures.has_failed(rank, left)
                and not self._opinions.has_opinion(rank, left)
            ]
            if left and able:
                yield min(able, key=self._emptiest), left, slow.rank

    def next_deadline(self, now: float) -> float | None:
        """When there may be another copy."""
        return self._still.next_deadline(now) if self._may_copy else None

    # --- how it works ---

    def _take(self, rank: int, waiting: int, places: int) -> list[int]:
        """Calls of one group for that peer's next chunk, as many as suit it."""
        group: int | None = None
        most, left = 1, MOST_CHUNK_BYTES

        def fits(item: int) -> bool:
            nonlocal group, most, left
            if not self._may_take(rank, item):
                return False
            left -= self._plan.weigh(item)
            if group is None:
                group = self._plan.group(item)
                most = self._sizes.next(rank, group, waiting, places)
            elif left < 0 or most <= 1 or self._plan.group(item) != group:
                return False
            else:
                most -= 1
            return True

        return self._items.take(MOST_CALLS, fits, new=len(self._opinions) < MOST_AWAITED)

    def _may_take(self, rank: int, item: int) -> bool:
        """Whether that peer has not given its opinion, and has not failed where others have not."""
        return not self._opinions.has_opinion(rank, (item,)) and self._failures.may_try(rank, item)

    def _emptiest(self, rank: int) -> tuple[float, int]:
        return self._chunks.load(rank), rank

    @property
    def _may_copy(self) -> bool:
        # A peer that is idle now found nothing to take.
        return any(self._chunks.idle(rank) for rank in self._chunks.able())
