"""The words of a member to one other about a blob, and the pieces that it was asked for.

A task runs only while there is something to say: a lease may have hundreds of blobs, and the job 64 members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from axonp2p.blobs.messages import MOST_ASKED, MOST_TOLD, BlobAsk, BlobGot, BlobHave, BlobPiece
from axonp2p.errors import PeerMisbehaved, Unreachable
from axonp2p.wire.codec import Message

TELL_EVERY_S = 0.05
"""The pieces got in between are told together."""
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
        self._have: BlobHave | None = BlobHave(blob=blob, pieces=have)
        self._got: list[int] = []
        self._asks: list[BlobAsk] = []
        self._waiting: dict[int, None] = {}
        self._news = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None
        self._giving: asyncio.Task[None] | None = None
        self._over = False
        self._stir()

    def answer(self, have: bytes) -> None:
        """It said what it has: say the same, with these bits."""
        self._have = BlobHave(blob=self._blob, pieces=have, answers=True)
        self._stir()

    def got(self, number: int) -> None:
        """We have that piece as well."""
        self._got.append(number)
        self._stir()

    def ask(self, numbers: Sequence[int]) -> None:
        """We want these pieces from it."""
        self._asks.append(BlobAsk(blob=self._blob, numbers=list(numbers)))
        self._stir()

    def wants(self, numbers: Iterable[int]) -> None:
        """It asked for these. Raises `PeerMisbehaved` when it wants too many at once."""
        self._waiting.update(dict.fromkeys(numbers))
        if len(self._waiting) > MOST_WAITING:
            raise PeerMisbehaved(f"a member that waits for more than {MOST_WAITING} pieces at once")
        if self._giving is None and not self._over:
            self._giving = asyncio.create_task(self._give())

    def close(self) -> None:
        """Say no more."""
        self._over = True
        for task in (self._telling, self._giving):
            if task is not None:
                task.cancel()

    def _stir(self) -> None:
        self._news.set()
        if self._telling is None and not self._over:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            while self._have or self._asks or self._got:
                if self._have is not None:
                    have, self._have = self._have, None
                    await self._say(have)
                asks, self._asks = self._asks, []
                for ask in asks:
                    await self._say(ask)
                got, self._got = self._got[:MOST_TOLD], self._got[MOST_TOLD:]
                if got:
                    await self._say(BlobGot(blob=self._blob, numbers=got))
                    await self._wait_for_more()
        except Unreachable:
            self._over = True  # the link has ended; a new one makes a new neighbour
        finally:
            self._telling = None

    async def _wait_for_more(self) -> None:
        """Gather what is got meanwhile; an ask or an answer does not wait."""
        until = asyncio.get_running_loop().time() + TELL_EVERY_S
        if self._got:
            return
        while not self._asks and not self._have and (left := until - asyncio.get_running_loop().time()) > 0:
            self._news.clear()
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                break

    async def _give(self) -> None:
        try:
            while self._waiting:
                number = next(iter(self._waiting))
                piece = await self._read(number)
                await self._say(BlobPiece(blob=self._blob, number=number), piece, bulk=True)
                self._waiting.pop(number, None)
        except Unreachable:
            self._over = True
        finally:
            self._giving = None
