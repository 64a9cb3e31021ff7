"""The daemon's end of the channel to a worker, for asyncio.

Frames are received straight into a buffer of their own, which is made only after their length was found to be within
the limits; a worker that sends faster than we take is stopped by its full socket.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque

from axonp2p.errors import MessageTooLarge, Unreachable
from axonp2p.sandbox.messages import FromWorkerMessage, ToWorkerMessage
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import FRAME_LIMIT, HEADER_LIMIT, pack_frame, split_frame

WAITING_FRAMES = 8
"""Frames that may lie here untaken before the socket is no longer read."""
SENDING_BYTES = 2 * FRAME_LIMIT
"""Bytes that may lie here unsent before `send` waits."""

_LENGTH = struct.Struct(">I")


class WorkerChannel:
    """The frames to and from one worker. Any task may send; one task receives."""

    def __init__(self, protocol: _Frames) -> None:
        self._frames = protocol

    @classmethod
    async def open(cls, end: socket.socket) -> WorkerChannel:
        """The channel on our end of a pair of stream sockets, which it owns from now on."""
        end.setblocking(False)
        transport, protocol = await asyncio.get_running_loop().create_connection(_Frames, sock=end)
        transport.set_write_buffer_limits(high=SENDING_BYTES)
        return cls(protocol)

    async def send(self, message: ToWorkerMessage, payload: bytes | memoryview = b"") -> None:
        """Send one frame; waits while the worker does not take its frames. Raises `Unreachable` when it is gone."""
        frame = pack_frame(message, payload)
        await self._frames.room()
        # Without an await between the two, so that frames of concurrent senders do not mix.
        self._frames.write(_LENGTH.pack(len(frame)))
        self._frames.write(frame)

    async def receive(self) -> tuple[FromWorkerMessage, bytes]:
        """The next message and its payload. May be cancelled without losing anything.

        Raises `Unreachable` when the worker closed the channel, `MessageTooLarge` or `MalformedMessage` when it sent
        rubbish, after which nothing on the channel can be trusted.
        """
        frame = split_frame(memoryview(await self._frames.take()))
        message: FromWorkerMessage = decode(frame.header, FromWorkerMessage, HEADER_LIMIT)
        return message, bytes(frame.payload)

    def close(self) -> None:
        """Close the channel at once; who waits on it gets `Unreachable`."""
        self._frames.abort()


class _Frames(asyncio.BufferedProtocol):
    """Cuts the stream into frames, each received into its own buffer."""

    def __init__(self) -> None:
        self._length = bytearray(_LENGTH.size)
        self._buffer = self._length
        self._filled = 0
        self._ready: deque[bytearray] = deque()
        self._broken: MessageTooLarge | Unreachable | None = None
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None

    # What the channel asks for.

    async def take(self) -> bytearray:
        while not self._ready:
            if self._broken is not None:
                raise self._broken
            self._arrived.clear()
            await self._arrived.wait()
        frame = self._ready.popleft()
        if self._transport is not None and len(self._ready) == WAITING_FRAMES - 1:
            self._transport.resume_reading()
        return frame

    async def room(self) -> None:
        while not self._writable.is_set():
            await self._writable.wait()
        if self._transport is None or self._transport.is_closing():
            raise Unreachable("the worker is gone")

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled < len(self._buffer):
            return
        self._filled = 0
        if self._buffer is self._length:
            self._begin_frame()
        else:
            self._ready.append(self._buffer)
            self._buffer = self._length
            self._arrived.set()
            if len(self._ready) == WAITING_FRAMES and self._transport is not None:
                self._transport.pause_reading()

    def _begin_frame(self) -> None:
        (length,) = _LENGTH.unpack(self._length)
        if 0 < length <= FRAME_LIMIT:
            self._buffer = bytearray(length)
            return
        self._broken = MessageTooLarge(f"the worker announced a frame of {length} bytes; at most {FRAME_LIMIT}")
        self._arrived.set()
        self.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._broken = self._broken or Unreachable("the worker closed its channel", cause=str(error or ""))
        self._arrived.set()
        self._writable.set()
