"""Two connections made into one: what comes in at one end goes out at the other, as it is (a door).

Each connection came as an HTTP request. Its transport is taken from aiohttp for as long as the stream lasts, so bytes
pass from one socket to the other without a copy of ours in between; afterwards aiohttp is told that it is gone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from axonp2p.errors import Unreachable

BUFFERED_BYTES = 128 * 1024
"""The bytes that may wait in this program for one end, before the other one is read no more."""
UNSENT_BYTES = 128 * 1024
"""The bytes not sent yet that may wait in the kernel."""

Carried = Callable[[int], float]
"""Told how many bytes came in; says for how many seconds to read no more."""


class End(asyncio.Protocol):
    """One end of a stream."""

    def __init__(self, transport: asyncio.Transport, original: asyncio.BaseProtocol, carried: Carried) -> None:
        """`original` is the protocol that had the transport before."""
        self.gone = asyncio.Event()
        """Set once this connection is lost."""
        self._transport = transport
        self._original = original
        self._carried = carried
        self.other: End | None = None
        """Where what comes in goes out."""
        self._held: set[str] = set()
        transport.set_protocol(self)
        transport.set_write_buffer_limits(high=BUFFERED_BYTES)
        plain: socket.socket | None = transport.get_extra_info("socket")
        if plain is not None and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            with suppress(OSError):
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    def say(self, head: bytes) -> None:
        """Our own last words on this connection, before it belongs to the stream."""
        self._transport.write(head)

    def hold(self, reason: str) -> None:
        """Read no more of it, until this reason (and all others) are gone."""
        self._held.add(reason)
        self._transport.pause_reading()

    def let_go(self, reason: str) -> None:
        """That reason is gone."""
        self._held.discard(reason)
        if not self._held and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """No more of it, once what was written is out. Harmless when it is closed."""
        if not self._transport.is_closing():  # TLS that is closed twice can no more be aborted
            self._transport.close()

    def abort(self) -> None:
        """No more of it, at once. Harmless when it is closed."""
        with suppress(
            AttributeError
        ):  # TLS that was closed twice has nothing to abort: Python 3.11.2 stumbles over that
            self._transport.abort()

    # --- what asyncio calls ---

    def data_received(self, data: bytes) -> None:
        """Pass on."""
        if self.other is None:
            self.close()  # bytes before the stream was there: this is not how it is done
            return
        wait = self._carried(len(data))
        self.other._transport.write(data)
        if wait > 0:
            self.hold("rate")
            asyncio.get_running_loop().call_later(wait, self.let_go, "rate")

    def eof_received(self) -> bool:
        """The end of one direction is the end: TLS sessions never need half of a stream."""
        return False

    def pause_writing(self) -> None:
        """This end is slow: read no more from the other one."""
        if self.other is not None:
            self.other.hold("other end")

    def resume_writing(self) -> None:
        """Go on reading from the other one."""
        if self.other is not None:
            self.other.let_go("other end")

    def connection_lost(self, error: Exception | None) -> None:
        """So the other end is closed as well, after what it still has to be told."""
        self.gone.set()
        if self.other is not None:
            self.other.close()
        self._original.connection_lost(error)


def take_over(request: web.Request, carried: Carried) -> End:
    """The connection of a request, out of aiohttp's hands. Raises `Unreachable` when it is lost already."""
    transport = request.transport
    if transport is None or transport.is_closing():
        raise Unreachable("the caller was lost before there was a stream")
    return End(transport, transport.get_protocol(), carried)


def join(one: End, other: End) -> None:
    """Bytes that come in at one go out at the other, from now on."""
    one.other, other.other = other, one


async def until_gone(one: End, other: End) -> None:
    """Until both are lost: each takes the other with it."""
    await one.gone.wait()
    await other.gone.wait()
