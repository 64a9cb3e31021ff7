"""The messages of a lease's worker to its client: words at once, bulk as the line takes it, neither behind the other.

A client that reads slowly holds up neither the members nor what is said to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from axonp2p.errors import Unreachable
from axonp2p.jobs.messages import FromWorker
from axonp2p.transport.sessions.session import Session
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import FRAME_COST, PAYLOAD_LIMIT
from peer_daemon.links.credit import MOST_BYTES
from peer_daemon.links.in_turn import InTurn


class ClientLine:
    """As much of a session as those need that speak to the client; another one when the client comes back.

    Words to a client that is away are lost: when it is back it asks anew. So nobody behind it ever waits for it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        """The newest."""
        self._came = asyncio.Event()

    def put(self, session: Session) -> Session:
        """The client is back; gives the session that this one replaces."""
        before, self.session = self.session, session
        self._came.set()
        return before

    async def other_than(self, session: Session) -> None:
        """Returns once there is another one."""
        while self.session is session:
            self._came.clear()
            await self._came.wait()

    @property
    def ended(self) -> asyncio.Event:
        """Set when the client is away."""
        return self.session.ended

    async def send(self, message: Message, payload: bytes | memoryview = b"", *, bulk: bool = False) -> None:
        """Say it, if the client is there."""
        with suppress(Unreachable):
            await self.session.send(message, payload, bulk=bulk)


T = TypeVar("T")


class ByteQueue(asyncio.Queue[T]):
    """Full with `most_bytes` in it, counting each message and its fixed cost; one message may pass the bound."""

    def __init__(self, most_bytes: int, size_of: Callable[[T], int]) -> None:
        """`size_of` gives the bytes of a message, without its fixed cost."""
        super().__init__()
        self._most_bytes = most_bytes
        self._size_of = size_of
        self.bytes = 0
        """In it now, with their costs."""

    def full(self) -> bool:
        """Whether the next one has to wait."""
        return self.bytes >= self._most_bytes

    def _put(self, item: T) -> None:
        self.bytes += self._size_of(item) + FRAME_COST
        super()._put(item)

    def _get(self) -> T:
        item = super()._get()
        self.bytes -= self._size_of(item) + FRAME_COST
        return item


WAITING_WORDS = 2 * 2**20
"""Bytes of words that may lie here, each with its fixed cost; a worker that says more waits."""
WAITING_BULK = MOST_BYTES + PAYLOAD_LIMIT + FRAME_COST
"""The same for bulk: as much as a worker is ever given credit for, and one message."""


class ClientSender:
    """The two queues of one lease. `carry` sends until it is cancelled."""

    def __init__(self, session: ClientLine, upload: InTurn, went: Callable[[int], None]) -> None:
        """`went(bytes)` is told of bulk that has left its queue, on which no more lies than was given credit for."""
        self._session = session
        self._upload = upload
        self._went = went
        self._words: ByteQueue[tuple[Message, bytes | memoryview]] = ByteQueue(WAITING_WORDS, lambda said: len(said[1]))
        self._bulk: ByteQueue[memoryview] = ByteQueue(WAITING_BULK, len)

    async def word(self, message: Message, payload: bytes | memoryview = b"") -> None:
        """Queue a small message; waits in a flood of them."""
        await self._upload.word(len(payload))
        await self._words.put((message, payload))

    def bulk(self, payload: memoryview) -> None:
        """Queue a large message of the worker, who was given credit for it."""
        self._bulk.put_nowait(payload)

    async def carry(self) -> None:
        """Send for as long as the lease lives."""
        await asyncio.gather(self._carry_words(), self._carry_bulk())

    async def flush(self) -> None:
        """Wait until all of it is sent, or cannot be."""
        sent = asyncio.gather(self._words.join(), self._bulk.join())
        ends: list[asyncio.Future[Any]] = [sent, asyncio.create_task(self._session.ended.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _carry_words(self) -> None:
        while True:
            message, payload = await self._words.get()
            await self._session.send(message, payload)
            self._words.task_done()

    async def _carry_bulk(self) -> None:
        while True:
            payload = await self._bulk.get()
            self._went(len(payload))
            await self._upload.bulk(self._session, len(payload))
            await self._session.send(FromWorker(), payload, bulk=True)
            self._bulk.task_done()
