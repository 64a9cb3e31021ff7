"""Messages of members, waiting to be dealt with by one task alone; far too many of them cost a member its place."""

from __future__ import annotations

import asyncio
from collections import Counter

from axonp2p.training.coordinator.member_events import MemberWord
from axonp2p.training.round_messages import Event, ProgressHeard

MOST_WAITING = 64
"""Words of one member that may wait. An honest one says a handful a round, so more than that is misbehaviour."""
MOST_PROGRESS = 8
"""With so many waiting, word of its progress is not worth keeping."""


class Inbox:
    """Events in the order in which they came. Putting one in never waits."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[tuple[int | None, Event]] = asyncio.Queue()
        self._waiting: Counter[int] = Counter()

    def put(self, event: Event) -> None:
        """Something that happened here; who says it is not limited."""
        self._events.put_nowait((None, event))

    def put_told(self, rank: int, event: Event, most: int = MOST_WAITING) -> bool:
        """Something that a member's daemon tells; False, and it is not kept, when `most` words of it wait."""
        if self._waiting[rank] >= most:
            return False
        self._waiting[rank] += 1
        self._events.put_nowait((rank, event))
        return True

    def put_word(self, word: MemberWord) -> bool:
        """Something that a member says; False when it says too much."""
        if isinstance(word, ProgressHeard):
            self.put_told(word.rank, word, MOST_PROGRESS)
            return True
        return self.put_told(word.rank, word)

    async def take(self, seconds: float | None) -> Event | None:
        """The next one; None when none comes for so long."""
        try:
            async with asyncio.timeout(seconds):
                rank, event = await self._events.get()
        except TimeoutError:
            return None
        if rank is not None:
            self._waiting[rank] -= 1
        return event

    def __len__(self) -> int:
        return self._events.qsize()
