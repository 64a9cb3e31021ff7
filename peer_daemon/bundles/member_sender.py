"""What a member says to one other of the bundle: words as they come up, and the pieces that it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from axonp2p.blobs.messages import MOST_ASKED, MOST_TOLD, BlobAsk, BlobGot, BlobHave, BlobPiece
from axonp2p.errors import PeerMisbehaved, Unreachable
from axonp2p.wire.codec import Message

TELL_EVERY_S = 0.05
"""What was got in between is told together."""
MOST_WAITING = 8 * MOST_ASKED
"""Pieces that one member may wait for: more than any that keeps the rules asks for at once."""


class Say(Protocol):
    """`Mesh.say` to that member."""

    async def __call__(self, message: Message, payload: bytes = b"", *, bulk: bool = False) -> None: ...


class MemberSender:
    """One member, for as long as one link to it lasts. `close` when it ends."""

    def __init__(self, blob: bytes, have: bytes, say: Say, read: Callable[[int], Awaitable[bytes]]) -> None:
        """`have`: the bits of what we have now; `read` gives a piece's bytes, empty when we do not have it."""
        self._blob = blob
        self._say = say
        self._read = read
        self._first: BlobHave | None = BlobHave(blob=blob, pieces=have)
        self._got: list[int] = []
        self._asks: list[BlobAsk] = []
        self._news = asyncio.Event()
        self._waiting: dict[int, None] = {}
        self._work = asyncio.Event()
        self._news.set()
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._give())]

    def got(self, number: int) -> None:
        """We have that piece as well."""
        self._got.append(number)
        self._news.set()

    def ask(self, numbers: Sequence[int]) -> None:
        """We want these pieces from it."""
        self._asks.append(BlobAsk(blob=self._blob, numbers=list(numbers)))
        self._news.set()

    def wants(self, numbers: Iterable[int]) -> None:
        """It asked for these. Raises `PeerMisbehaved` when it wants too many at once."""
        self._waiting.update(dict.fromkeys(numbers))
        if len(self._waiting) > MOST_WAITING:
            raise PeerMisbehaved(f"a member that waits for more than {MOST_WAITING} pieces at once")
        self._work.set()

    def close(self) -> None:
        """Say no more."""
        for task in self._tasks:
            task.cancel()

    async def _tell(self) -> None:
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                if self._first is not None:
                    first, self._first = self._first, None
                    await self._say(first)
                asks, self._asks = self._asks, []
                for ask in asks:
                    await self._say(ask)
                got, self._got = self._got[:MOST_TOLD], self._got[MOST_TOLD:]
                if got:
                    await self._say(BlobGot(blob=self._blob, numbers=got))
                    await self._wait_for_more()
        except Unreachable:
            return  # the link has ended; a new one makes a new neighbour

    async def _wait_for_more(self) -> None:
        """Gather what is got meanwhile; an ask does not wait."""
        until = asyncio.get_running_loop().time() + TELL_EVERY_S
        if self._got:
            self._news.set()
            return
        while not self._asks and (left := until - asyncio.get_running_loop().time()) > 0:
            self._news.clear()
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                break
        if self._got or self._asks:
            self._news.set()

    async def _give(self) -> None:
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                while self._waiting:
                    number = next(iter(self._waiting))
                    piece = await self._read(number)
                    await self._say(BlobPiece(blob=self._blob, number=number), piece, bulk=True)
                    self._waiting.pop(number, None)
        except Unreachable:
            return
