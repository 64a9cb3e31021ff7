"""What members say, waiting to be dealt with by one task alone; far too much of it costs a member its place."""

from __future__ import annotations

import asyncio
from collections import Counter

from axonp2p.training.member_words import MemberWord
from axonp2p.training.round_messages import Event, ProgressHeard

MOST_WAITING = 64
"""Words of one member that may wait. An honest one says a handful a round, so more than that is misbehaviour."""
MOST_PROGRESS = 8
"""With so many waiting, word of its progress is not worth keeping."""


class Inbox:
    """Events in the order in which they came. Putting one in never waits."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._waiting: Counter[int] = Counter()

    def put(self, event: Event) -> None:
        """Something that happened; who says it is not limited."""
        self._events.put_nowait(event)

    def put_word(self, word: MemberWord) -> bool:
        """Something that a member says; False when it says too much."""
        if isinstance(word, ProgressHeard) and self._waiting[word.rank] >= MOST_PROGRESS:
            return True
        self._waiting[word.rank] += 1
        if self._waiting[word.rank] > MOST_WAITING:
            return False
        self._events.put_nowait(word)
        return True

    async def take(self, seconds: float | None) -> Event | None:
        """The next one; None when none comes for so long."""
        try:
            async with asyncio.timeout(seconds):
                event = await self._events.get()
        except TimeoutError:
            return None
        if isinstance(event, MemberWord):
            self._waiting[event.rank] -= 1
        return event

    def __len__(self) -> int:
        return self._events.qsize()
