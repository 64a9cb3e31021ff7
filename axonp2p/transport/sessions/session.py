"""A session: typed messages with large payloads, both ways, between two proved keys, over one WebSocket.

Three things run beside the application. The *reader* always reads, so that signs of life are heard however slowly
the application takes its messages. The *ticker* says every few seconds, and whenever it matters, how much our
application has taken (`window`); it travels as a WebSocket PONG, which needs no answer. The *watch* looks every few
seconds whether anything has arrived; a line on which it finds nothing several times in a row is dead. It counts looks,
not seconds: a program that stood still itself for long has not read what arrived meanwhile, and looks for it once.

Words go before bulk. Each of the two has its own order, bulk never fills the whole window, and little that is on its
way to the other side lies here (`line_tuning`), so a word waits for one large frame at most.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, get_args

from aiohttp import ClientWebSocketResponse, WebSocketError, WSCloseCode, WSMsgType, web

from axonp2p.errors import AxonError, MalformedMessage, MessageTooLarge, PeerMisbehaved, Unreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.flow.tcp_state import TcpState
from axonp2p.transport.flow.window import STRANGERS_UNFINISHED, WINDOW_BYTES, ReceiveWindow, SendWindow
from axonp2p.transport.foreign_errors import NETWORK_ERRORS, plain_words
from axonp2p.transport.messages import Refusal, error_of, refusal_of
from axonp2p.transport.sessions.line_tuning import notice_arrivals, read_in_large, read_tcp_state, tune
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.frame import HEADER_LIMIT, pack_frame, split_frame

WebSocket = ClientWebSocketResponse | web.WebSocketResponse

TICK_S = 3.0
"""How often each side gives a sign of life, in seconds."""
LOOK_S = 2.5
"""How often the watch looks, in seconds."""
SILENT_LOOKS = 4
"""So often in a row nothing has arrived before a line is dead: ten seconds."""
CLOSE_S = 2.0
"""How long a close waits for the other side to agree, in seconds."""
SMALL_BYTES = 16 * 1024
"""Frames up to this size are never held back to slow the other side down."""
UNTAKEN_S = 60.0
"""A session whose other side takes nothing for so long, while something waits for it, is ended, in seconds."""


MOST_TURNS = 20
"""So often a message is put off while others of its household come first, before it is dealt with all the same."""


class SessionLimits(Protocol):
    """The count of the sessions that strangers open, and of the bytes that they send ahead."""

    def holds(self, session: Session, count: int) -> None:
        """So many bytes of that session wait for our application now."""
        ...

    def admitted(self, session: Session) -> None:
        """The application has taken that caller in."""
        ...

    def wait(self, session: Session) -> float:
        """For how many seconds a message of that session is not dealt with yet; 0: now, and it is counted."""
        ...


class Session:
    """One end of a session whose handshake is done. Made by `dialer.dial` and `Listener.accept`."""

    def __init__(
        self,
        line: WebSocket,
        *,
        peer: PeerId,
        address: str,
        called: str,
        relay: str = "",
        source: str = "",
        door: SessionLimits | None = None,
        release: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`door`: where a stranger opened it. `release` frees what the connection was made with, once, at the end."""
        self.peer = peer
        self.relay = relay
        """Through which we dialled, as `Way` shows it; empty for a direct line, and on the side that was dialled."""
        self.address = address
        self.source = source
        """By what a caller is counted (`relay.inner.source_at`); empty where we called."""
        self.called = called
        self.lanes_to: PinnedAddress | None = None
        """Where we may open lanes beside it: the end that we called directly, without a relay, and its certificate."""
        self.lanes_from = ""
        """The household from which the caller's lanes come; empty where it came through a relay, or we called."""
        self.ended = asyncio.Event()
        """Set once nothing more can be sent; what has arrived can still be received, unless this side ended it."""
        self._line = line
        self._plain: socket.socket | None = line.get_extra_info("socket")
        tune(line)
        if door is None:
            read_in_large(line)
        self._door = door
        self._release = release
        self._untaken_s: float | None = UNTAKEN_S
        self._window = SendWindow()
        self._arrivals = ReceiveWindow()
        if door is not None:
            self._arrivals.most_unfinished = STRANGERS_UNFINISHED
        # The window bounds it, in bytes and in frames (`ReceiveWindow`): a bound of the queue would stop the reader.
        self._queue: asyncio.Queue[memoryview | None] = asyncio.Queue()
        self._given_up: AxonError | None = None
        """Why this side ends the session, which the reader is cancelled to do."""
        self.failure: AxonError = Unreachable(f"the session with {called} was closed", cause="closed on this side")
        """Why the session ended, once it has."""
        self._word_turn, self._bulk_turn = asyncio.Lock(), asyncio.Lock()
        self._hold_back: Callable[[int], float] | None = None
        self._writing = asyncio.Lock()
        self._room = asyncio.Event()
        self._tick = asyncio.Event()
        self._heard = False
        self._silent_looks = 0
        notice_arrivals(line, self._hear)
        self._reader = asyncio.create_task(self._read())
        self._ticker = asyncio.create_task(self._tell())
        self._watch = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    # --- what the application uses ---

    @property
    def closed(self) -> bool:
        """Whether the session has ended, from either side."""
        return self.ended.is_set()

    @property
    def sent_bytes(self) -> int:
        """Bytes of all frames sent, without what WebSocket and TLS add."""
        return self._window.sent_bytes

    @property
    def received_bytes(self) -> int:
        """Bytes of all frames received, without what WebSocket and TLS add."""
        return self._arrivals.arrived_bytes

    @property
    def sent_frames(self) -> int:
        """How many messages were sent."""
        return self._window.sent_frames

    @property
    def taken_frames(self) -> int:
        """How many of the messages sent the other side's application has surely taken."""
        return self._window.taken_frames

    def tcp_state(self) -> TcpState | None:
        """The kernel's counts of this line; None when it does not say, or the line is gone."""
        return read_tcp_state(self._plain) if self._plain is not None and not self.closed else None

    def admit(self) -> None:
        """The application has taken the caller in: its session keeps its place, and all of its window."""
        door, self._door = self._door, None
        if door is not None and not self.closed:
            read_in_large(self._line)
            self._arrivals.most_unfinished = WINDOW_BYTES
            door.admitted(self)

    def wait_for_long(self) -> None:
        """The other side may stand still for hours (a worker whose owner needs the machine): signs of life will do."""
        self._untaken_s = None

    def end(self, reason: AxonError) -> None:
        """End the session at once, from this side, without waiting for anything. Harmless when it has ended."""
        if not self.closed and self._given_up is None:
            self._given_up = reason
            self._reader.cancel()

    def slow_down(self, hold_back: Callable[[int], float]) -> None:
        """From now on the other side hears only `hold_back(bytes)` seconds later that a large message was taken.

        So it sends no faster than that on the average, while everything that arrives is taken at once.
        """
        self._hold_back = hold_back

    async def send(self, message: Message, payload: bytes | memoryview = b"", *, bulk: bool = False) -> None:
        """Send one message, after others of its kind, words before `bulk`; waits while the other side is slow.

        Raises `Unreachable` when the session has ended, `MessageTooLarge` when ours is over the frame's limits.
        """
        frame = pack_frame(message, payload)
        async with self._bulk_turn if bulk else self._word_turn:
            while not self.closed and not self._window.has_room(len(frame), bulk=bulk):
                await self._until_more_was_taken()
            if self.closed:
                raise self._why()
            self._window.sent(len(frame))
            await self._write(self._line.send_bytes, frame)

    async def receive(self, kind: Any) -> tuple[Any, memoryview]:
        """The next message, which must be of `kind` (a message type or a union), and its payload.

        Raises `Unreachable` at the end of the session; the other side's refusal, where `kind` has no `Refusal`;
        `MalformedMessage` or `MessageTooLarge` on rubbish, after which the session is closed.
        """
        frame = await self._queue.get()
        if frame is None:
            self._queue.put_nowait(None)  # the next call finds the end as well
            raise self._why()
        await self._turn()
        wait = self._hold_back(len(frame)) if self._hold_back and len(frame) > SMALL_BYTES else 0.0
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._took, len(frame))
        else:
            self._took(len(frame))
        expected, refusal_expected = _with_refusal(kind)
        try:
            parts = split_frame(frame)
            message = decode(parts.header, expected, HEADER_LIMIT)
        except PeerMisbehaved as error:
            await self.refuse(error)
            raise type(error)(f"{self.called}: {error.message}", cause=error.cause) from error
        if isinstance(message, Refusal) and not refusal_expected:
            await self.close()
            raise error_of(message, self.called)
        return message, parts.payload

    async def refuse(self, error: AxonError) -> None:
        """Say why not, and close."""
        with suppress(Unreachable):
            async with asyncio.timeout(CLOSE_S):
                await self.send(refusal_of(error))
        await self.close()

    async def close(self) -> None:
        """End the session; what was sent before arrives if it can within `CLOSE_S`. Harmless when it has ended."""
        if not self.closed:
            self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._drop()
        with suppress(TimeoutError, *NETWORK_ERRORS):
            async with asyncio.timeout(2 * CLOSE_S):
                await self._line.close()
        self._cut()
        await self._free()

    # --- what runs beside it ---

    async def _read(self) -> None:
        try:
            while True:
                kind, data, _ = await self._line.receive()
                if kind is WSMsgType.BINARY:
                    self._arrivals.arrived(len(data))
                    self._queue.put_nowait(memoryview(data))
                elif kind is WSMsgType.PONG:
                    news = self._window.told(data)
                    self._arrivals.sign(news=news, now=asyncio.get_running_loop().time())
                    if news:
                        self._room.set()
                elif kind is WSMsgType.PING:
                    self._arrivals.sign(news=False, now=asyncio.get_running_loop().time())
                    self._tick.set()
                elif kind is WSMsgType.TEXT:
                    raise MalformedMessage("text where only binary messages travel")
                else:
                    self.failure = self._loss(data)
                    break
        except PeerMisbehaved as error:
            self.failure = type(error)(f"{self.called}: {error.message}")
            with suppress(TimeoutError, *NETWORK_ERRORS):
                async with asyncio.timeout(CLOSE_S):
                    await self._line.close(code=WSCloseCode.POLICY_VIOLATION)
        except NETWORK_ERRORS as error:
            self.failure = self._loss(error)
        except asyncio.CancelledError:
            if self._given_up is None:
                raise
            self.failure = self._given_up
        finally:
            self._end()
        self._cut()
        await self._free()

    async def _tell(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._tick.wait()
            self._tick.clear()
            with suppress(Unreachable):
                await self._write(self._line.pong, self._arrivals.word())

    def _hear(self, count: int) -> bool:
        self._heard = True
        try:
            self._arrivals.read(count)
        except PeerMisbehaved as error:
            self.end(type(error)(f"{self.called}: {error.message}"))
        self._tell_door()
        return self._given_up is None

    def _tell_door(self) -> None:
        if self._door is not None:
            self._door.holds(self, self._arrivals.waiting)

    def _look(self) -> None:
        self._silent_looks = 0 if self._heard else self._silent_looks + 1
        self._heard = False
        if self._silent_looks < SILENT_LOOKS:
            self._watch = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        else:
            self.end(self._lost("no sign of life for ten seconds"))

    # --- how it works ---

    async def _until_more_was_taken(self) -> None:
        self._room.clear()
        try:
            async with asyncio.timeout(self._untaken_s):
                await self._room.wait()
        except TimeoutError:
            self.end(self._lost(f"it took nothing for {UNTAKEN_S:.0f} s"))
            await self.ended.wait()

    def _lost(self, cause: str) -> Unreachable:
        return Unreachable(f"the session with {self.called} was lost", cause=cause)

    async def _turn(self) -> None:
        """Where a stranger opened the session: until one more of its messages may be dealt with."""
        for _ in range(MOST_TURNS):
            if self._door is None or (wait := self._door.wait(self)) <= 0:
                return
            await asyncio.sleep(wait)

    def _took(self, size: int) -> None:
        if self._arrivals.took(size):
            self._tick.set()
        self._tell_door()

    async def _write(self, write: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
        # One writer at a time: aiohttp's writers share one future, which a cancelled one would cancel for all.
        # Never held while the window is full, so that signs of life pass; the other side always reads.
        async with self._writing:
            try:
                async with asyncio.timeout(self._untaken_s):
                    await write(data)
            except TimeoutError:
                # It reads no more: nothing that we say, signs of life neither, could reach it.
                lost = self._lost(f"it read nothing for {UNTAKEN_S:.0f} s")
                self.end(lost)
                raise lost from None
            except NETWORK_ERRORS as error:
                raise self._lost(plain_words(error)) from error

    def _loss(self, data: object) -> AxonError:
        """Why no more can be read, from the last thing that aiohttp gave us."""
        error = data if isinstance(data, BaseException) else self._line.exception()
        if isinstance(error, WebSocketError):
            kind = MessageTooLarge if error.code == WSCloseCode.MESSAGE_TOO_BIG else MalformedMessage
            return kind(f"{self.called} breaks the WebSocket protocol", cause=str(error))
        return self._lost("it hung up" if error is None else plain_words(error))

    def _why(self) -> AxonError:
        # A fresh one each time: each raise would add its own traceback to a shared one.
        return type(self.failure)(self.failure.message, cause=self.failure.cause)

    def _end(self) -> None:
        if not self.closed:
            self.ended.set()
            self._room.set()
            self._ticker.cancel()
            self._watch.cancel()
            self._queue.put_nowait(None)
            if self._given_up is not None or isinstance(self.failure, PeerMisbehaved):
                self._drop()

    def _drop(self) -> None:
        # Words that nobody shall hear any more, thousands of a stranger's: they would wait for the collector.
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    def _cut(self) -> None:
        # Wakes a sender that waits on a dead line, which nothing else would for a long time.
        if self._plain is not None:
            with suppress(OSError):
                self._plain.shutdown(socket.SHUT_RDWR)

    async def _free(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            await release()


@functools.lru_cache(maxsize=64)
def _with_refusal(kind: Any) -> tuple[Any, bool]:
    """The union of `kind` and `Refusal`, and whether that was already in it."""
    expected = kind is Refusal or Refusal in get_args(kind)
    return (kind if expected else kind | Refusal), expected
