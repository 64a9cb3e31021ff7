"""Grants a worker its credit: counts for each receiver (`credit`), each message with its fixed cost, and says so."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from axonp2p.sandbox.messages import MayTell
from axonp2p.wire.frame import FRAME_COST
from peer_daemon.links.credit import FlowCredit, WindowGrowth

CLIENT = None
"""In place of a rank: the client's coordinator."""


class WorkerCredit:
    """The credit of one worker: for messages to members by rank, and for bulk to the coordinator."""

    def __init__(self) -> None:
        self._growth = WindowGrowth()
        self._credits: dict[int | None, FlowCredit] = {}
        self._granted: Counter[int | None] = Counter()
        self._news = asyncio.Event()

    def begin(self, receivers: Iterable[int | None]) -> None:
        """There are new lines to these receivers."""
        for rank in receivers:
            self._grant(rank, self._credits.setdefault(rank, FlowCredit(self._growth)).first())

    def said(self, rank: int | None, count: int) -> None:
        """A message with so many bytes of payload waits for that line. Raises `MalformedMessage` without credit."""
        self._credits[rank].said(count + FRAME_COST)

    def dropped(self, rank: int | None, count: int) -> None:
        """That receiver is out of reach. Raises `MalformedMessage` too, but not for a rank that never had credit."""
        if rank in self._credits:
            self._credits[rank].dropped(count + FRAME_COST)

    def went(self, rank: int | None, count: int) -> None:
        """The line has taken a message of so many bytes."""
        self._grant(rank, self._credits[rank].went(count + FRAME_COST))

    async def tell(self, tell_worker: Callable[[MayTell], Awaitable[None]]) -> None:
        """Say what was granted since the last time."""
        self._news.clear()
        while self._granted:
            rank, count = self._granted.popitem()
            await tell_worker(MayTell(rank=rank, bytes=count))

    async def keep_telling(self, tell_worker: Callable[[MayTell], Awaitable[None]]) -> None:
        """Say it whenever something is granted."""
        while True:
            await self._news.wait()
            await self.tell(tell_worker)

    def _grant(self, rank: int | None, count: int) -> None:
        if count:
            self._granted[rank] += count
            self._news.set()
