"""The daemon's end of the channel to a worker, for asyncio.

Straight on the socket, because asyncio's streams copy what the kernel does not take at once: a frame is received
into a buffer of its own, made only after its length was found to be within the limits, and a payload is sent from
where it lies. Nothing is read before somebody asks for it, and at most one frame lies here unsent: a worker that is
faster than we are is stopped by its full socket, and one that is slower stops whoever sends to it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

from axonp2p.errors import MessageTooLarge, Unreachable
from axonp2p.sandbox.messages import FromWorkerMessage, ToWorkerMessage
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import FRAME_LIMIT, HEADER_LIMIT, frame_head, split_frame

SOCKET_BYTES = 1024 * 1024
"""The bytes that the kernel may hold for each direction, where it grants so much: fewer turns for the same bytes."""

_LENGTH = struct.Struct(">I")


class WorkerChannel:
    """The frames to and from one worker. Any task may send; one task receives."""

    def __init__(self, end: socket.socket) -> None:
        """`end` is ours of a pair of stream sockets; the channel owns it from now on."""
        end.setblocking(False)
        for direction in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, direction, SOCKET_BYTES)
        self._socket = end
        self._descriptor = end.fileno()
        self._loop = asyncio.get_running_loop()
        self._incoming = memoryview(bytearray(_LENGTH.size))
        self._filled = 0
        self._length_known = False
        self._outgoing: list[memoryview] = []
        self._turn = asyncio.Lock()
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._end: MessageTooLarge | Unreachable | None = None
        """Why no more can be received."""
        self._gone = ""
        """Why no more can be sent; the worker's last words may still lie in the socket then."""

    async def send(self, message: ToWorkerMessage, payload: bytes | memoryview = b"") -> None:
        """Send one frame, whose payload must not change afterwards; waits while the worker does not take its frames.

        When it is cancelled, nothing of the frame was sent. Raises `Unreachable` when the worker is gone.
        """
        head = frame_head(message, len(payload))
        async with self._turn:
            while self._outgoing and not self._gone:
                await _turned(self._writable)
            if self._gone:
                raise Unreachable("the worker is gone", cause=self._gone)
            length = _LENGTH.pack(len(head) + len(payload))
            self._outgoing = [memoryview(length + head), memoryview(payload)]
            self._write()

    async def receive(self) -> tuple[FromWorkerMessage, memoryview]:
        """The next message and its payload. May be cancelled without losing anything.

        Raises `Unreachable` when the worker closed the channel, `MessageTooLarge` or `MalformedMessage` when it sent
        rubbish, after which nothing on the channel can be trusted.
        """
        # A worker that never pauses must not keep the daemon from everything else.
        await asyncio.sleep(0)
        while not self._frame_complete():
            if self._end is not None:
                raise self._end
            self._loop.add_reader(self._descriptor, self._readable.set)
            try:
                await _turned(self._readable)
            finally:
                self._stop(self._loop.remove_reader)
        frame = split_frame(self._incoming)
        self._expect(_LENGTH.size, length_known=False)
        message: FromWorkerMessage = decode(frame.header, FromWorkerMessage, HEADER_LIMIT)
        return message, frame.payload

    def close(self) -> None:
        """Close the channel at once; who waits on it gets `Unreachable`."""
        self._ended(Unreachable("the worker closed its channel", cause="closed on this side"))
        self._stop(self._loop.remove_reader)
        self._socket.close()

    def _frame_complete(self) -> bool:
        """Read what there is; True once a whole frame lies in `_incoming`."""
        while self._end is None:
            try:
                received = self._socket.recv_into(self._incoming[self._filled :])
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                return self._ended(Unreachable("the worker closed its channel", cause=str(error)))
            if not received:
                return self._ended(Unreachable("the worker closed its channel"))
            self._filled += received
            if self._filled < len(self._incoming):
                continue
            if self._length_known:
                return True
            (length,) = _LENGTH.unpack(self._incoming)
            if not 0 < length <= FRAME_LIMIT:
                too_large = f"the worker announced a frame of {length} bytes; at most {FRAME_LIMIT}"
                return self._ended(MessageTooLarge(too_large))
            self._expect(length, length_known=True)
        return False

    def _expect(self, count: int, *, length_known: bool) -> None:
        self._incoming, self._filled, self._length_known = memoryview(bytearray(count)), 0, length_known

    def _write(self) -> None:
        """Write what the kernel takes; the rest follows when it takes more."""
        try:
            sent = self._socket.sendmsg(self._outgoing)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._send_no_more(str(error))
            return
        while self._outgoing and sent >= len(self._outgoing[0]):
            sent -= len(self._outgoing.pop(0))
        if self._outgoing:
            self._outgoing[0] = self._outgoing[0][sent:]
            self._loop.add_writer(self._descriptor, self._write)
        else:
            self._stop(self._loop.remove_writer)
            self._writable.set()

    def _ended(self, error: MessageTooLarge | Unreachable) -> bool:
        self._end = self._end or error
        self._readable.set()
        self._send_no_more(error.cause or error.message)
        return False

    def _send_no_more(self, reason: str) -> None:
        self._gone = self._gone or reason
        self._outgoing = []
        self._stop(self._loop.remove_writer)
        self._writable.set()

    def _stop(self, remove: Callable[[int], bool]) -> None:
        if self._socket.fileno() >= 0:  # a number that was closed may be somebody else's by now
            remove(self._descriptor)


async def _turned(event: asyncio.Event) -> None:
    """Wait until it is set from now on."""
    event.clear()
    await event.wait()
