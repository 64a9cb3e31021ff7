"""The settings of the kernel, of asyncio and of aiohttp for one line, and the kernel's word on it (a door).

Three of aiohttp's attributes are not public, nor four of asyncio's TLS. aiohttp's version is fixed in setup.cfg, and a
test notices when they go.
"""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp import ClientWebSocketResponse, web

from axonp2p.transport.flow.read_pace import ReadPace
from axonp2p.transport.flow.tcp_state import TcpState

READ_BYTES, SESSION_READ_BYTES = 32 * 1024, 256 * 1024
"""Bytes that TLS reads at once, on any connection and on one of a session. asyncio sets that much memory aside for each
connection, and touches it, before its first byte: 256 KiB would make silent connections dear."""
UNSENT_BYTES = 256 * 1024
BUFFERED_BYTES = 128 * 1024
"""Bytes that may lie unsent in the kernel, and before it in this program: so little stands before the next word."""

assert hasattr(asyncio.sslproto.SSLProtocol, "max_size")
asyncio.sslproto.SSLProtocol.max_size = READ_BYTES

# struct tcp_info of <linux/tcp.h>: rtt is the 16th of the 32-bit numbers that begin at byte 8.
_RTT, _ACKED_RECEIVED, _BUSY = struct.Struct("=I"), struct.Struct("=QQ"), struct.Struct("=Q")
_RETRIES_AT, _RTT_AT, _ACKED_AT, _BUSY_AT, _INFO_BYTES = 2, 68, 120, 168, 232


def tune(line: ClientWebSocketResponse | web.WebSocketResponse) -> None:
    """Keep queues short, read a busy line at a pace, and leave out the mask of WebSocket.

    A caller masks what it sends so that proxies which read along are not tricked (RFC 6455, 10.3). Nobody reads
    along inside TLS, and each mask is several copies of everything on both sides.
    """
    writer = line._writer
    assert writer is not None  # there is one from the handshake on
    writer.use_mask = False
    writer.transport.set_write_buffer_limits(high=BUFFERED_BYTES)
    read_at_a_pace(writer.transport)
    plain: socket.socket | None = line.get_extra_info("socket")
    if plain is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
        with suppress(OSError):  # a line that is already gone is noticed by whoever reads it
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)


def read_in_large(line: ClientWebSocketResponse | web.WebSocketResponse) -> None:
    """Read as much in one go as bulk needs, for a session that may bring it."""
    transport = line._writer.transport if line._writer is not None else None
    if (tls := getattr(transport, "_ssl_protocol", None)) is not None:
        tls.max_size = SESSION_READ_BYTES


def read_at_a_pace(line: asyncio.BaseTransport) -> None:
    """Read no more often than `ReadPace` has it. Does nothing where the TLS is not asyncio's own."""
    tls: Any = getattr(line, "_ssl_protocol", None)
    plain: Any = getattr(tls, "_transport", None)
    if isinstance(plain, asyncio.Transport) and plain.get_protocol() is tls and hasattr(tls, "_ssl_reading_paused"):
        plain.set_protocol(PacedReading(plain, tls))


class PacedReading(asyncio.BufferedProtocol):
    """Stands between a transport, of a socket or a relay's stream, and the TLS that asyncio makes of its bytes."""

    def __init__(self, plain: asyncio.Transport, tls: Any) -> None:
        self._plain = plain
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._pace = ReadPace()
        for name in ("get_buffer", "eof_received", "pause_writing", "resume_writing", "connection_lost"):
            setattr(self, name, getattr(tls, name))

    def buffer_updated(self, nbytes: int) -> None:
        """`asyncio.BufferedProtocol`."""
        self._tls.buffer_updated(nbytes)
        wait = self._pace.pause(nbytes, self._loop.time())
        if wait and self._plain.is_reading():
            self._plain.pause_reading()
            self._loop.call_later(wait, self._read_on)

    def _read_on(self) -> None:
        if not self._tls._ssl_reading_paused:  # else it goes on itself, once it has room
            self._plain.resume_reading()


class _CountingParser:
    """Stands between a connection of aiohttp and its reader of WebSocket frames."""

    def __init__(self, parser: Any, hear: Callable[[int], bool]) -> None:
        self._parser = parser
        self.hear = hear

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Bytes of the line; True: no more of them are wanted."""
        if not self.hear(len(data)):
            return True, b""
        fed: tuple[bool, bytes] = self._parser.feed_data(data)
        return fed

    def feed_eof(self) -> None:
        """The line is closed."""
        self._parser.feed_eof()


def notice_arrivals(line: ClientWebSocketResponse | web.WebSocketResponse, hear: Callable[[int], bool]) -> None:
    """Have `hear` called with the count of bytes whenever some arrive, before they are read; it says whether to go on.

    So a long message is a sign of life before it is whole, and what never becomes one is counted. The newest `hear` of
    a line counts.
    """
    writer = line._writer
    assert writer is not None
    protocol: Any = writer.transport.get_protocol()
    parser = protocol._payload_parser
    if isinstance(parser, _CountingParser):
        parser.hear = hear
    elif parser is not None:  # None: the line was lost a moment ago
        protocol._payload_parser = _CountingParser(parser, hear)


def read_tcp_state(plain: socket.socket) -> TcpState | None:
    """The counts of a connection; None where the kernel has none (only Linux does), or the connection is gone."""
    if not hasattr(socket, "TCP_INFO"):
        return None
    try:
        info = plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return None
    if len(info) < _BUSY_AT + _BUSY.size:
        return None
    acked, received = _ACKED_RECEIVED.unpack_from(info, _ACKED_AT)
    (busy,), (rtt,) = _BUSY.unpack_from(info, _BUSY_AT), _RTT.unpack_from(info, _RTT_AT)
    return TcpState(acked, received, busy / 1e6, rtt / 1e6)


def read_retries(plain: socket.socket) -> int:
    """How often in a row the kernel has sent the same bytes without an answer; 0 where it does not say."""
    if not hasattr(socket, "TCP_INFO"):
        return 0
    try:
        return plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)[_RETRIES_AT]
    except (OSError, IndexError):
        return 0
