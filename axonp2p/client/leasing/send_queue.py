"""The messages that wait to be sent to one peer: in order, bounded, and in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from axonp2p.errors import AxonError, Unreachable
from axonp2p.supervision import cancel_and_wait
from axonp2p.wire.codec import Message

ROOM = 256
"""Messages that may wait for one peer. A round is a handful, so this many means that it takes none."""


@dataclass(frozen=True)
class _Letter:
    message: Message | None
    payload: bytes
    sent: asyncio.Future[None] | None = None


class SendQueue:
    """A queue and the one task that empties it. Everything goes through it, so what is posted first arrives first."""

    def __init__(
        self, send: Callable[[Message, bytes], Awaitable[None]], failed: Callable[[AxonError], None], peer: str
    ) -> None:
        self._send = send
        self._failed = failed
        self._peer = peer
        self._error: AxonError | None = None
        self._waiting: asyncio.Queue[_Letter] = asyncio.Queue()
        self._task = asyncio.create_task(self._carry_out(), name=f"sends to {peer}")

    def post(self, message: Message, payload: bytes = b"") -> None:
        """Send when the line is free; never waits. Over the limit the peer counts as gone."""
        if self._error:
            return
        if self._waiting.qsize() >= ROOM:
            self._fail(Unreachable(f"peer {self._peer} took none of {ROOM} messages"))
        else:
            self._waiting.put_nowait(_Letter(message, payload))

    async def send(self, message: Message, payload: bytes = b"") -> None:
        """The same, but returns when it is sent. Raises `Unreachable` when the line is gone."""
        await self._sent(message, payload)

    async def caught_up(self) -> None:
        """Wait until all that was posted is sent. Raises `Unreachable` when the line is gone."""
        await self._sent(None, b"")

    async def stop(self) -> None:
        """Send no more."""
        self._fail(Unreachable(f"the session with peer {self._peer} was closed"), tell=False)
        await cancel_and_wait(self._task)

    async def _sent(self, message: Message | None, payload: bytes) -> None:
        if self._error:
            raise self._error
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(_Letter(message, payload, sent))
        await sent

    async def _carry_out(self) -> None:
        letter = None
        try:
            while True:
                letter = await self._waiting.get()
                if letter.message is not None:
                    await self._send(letter.message, letter.payload)
                if letter.sent and not letter.sent.done():
                    letter.sent.set_result(None)
        except AxonError as error:
            self._fail(error, letter)

    def _fail(self, error: AxonError, current: _Letter | None = None, *, tell: bool = True) -> None:
        if self._error:
            return
        self._error = error
        left = [current] if current else []
        while not self._waiting.empty():
            left.append(self._waiting.get_nowait())
        for letter in left:
            if letter.sent and not letter.sent.done():
                letter.sent.set_exception(error)
        if tell:
            self._failed(error)
