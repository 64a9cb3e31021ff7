"""Looks at the first bytes of a connection before TLS is spoken on it, and takes some of them out (a door)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from axonp2p.transport.sessions.proxy_header import HEADER_LIMIT, ProxyHeader, read_header

PREAMBLE = b"AXONLANE"
"""The first bytes of a connection for a lane. TLS begins with the byte 22."""
WITHIN_S = 3.0
"""They come with the first packet."""
_REST_S = 0.02
"""Until the rest is looked for of what came in two packets."""


async def take_first(transport: asyncio.Transport, most: int, count: Callable[[bytes], int | None]) -> bytes:
    """Take out as many bytes as `count` says of the first ones, `most` at most; None: more have to come.

    The transport must not read yet. Raises one of `NETWORK_ERRORS`, or what `count` does.
    """
    # The transport could only give them together with the beginning of TLS: its socket is looked into.
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as line:
        line.setblocking(False)
        async with asyncio.timeout(WITHIN_S):
            while True:
                await _readable(line)
                came = line.recv(most, socket.MSG_PEEK)
                if not came:
                    raise ConnectionResetError
                taken = count(came)
                if taken is not None:
                    return line.recv(taken) if taken else b""
                await asyncio.sleep(_REST_S)


async def take_preamble(transport: asyncio.Transport) -> bool:
    """Whether a lane begins here, whose preamble is taken out then. As `take_first`."""
    return bool(await take_first(transport, len(PREAMBLE), _of_lane))


def _of_lane(came: bytes) -> int | None:
    if came == PREAMBLE:
        return len(PREAMBLE)
    return None if PREAMBLE.startswith(came) else 0


async def _readable(line: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def came() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(line.fileno(), came)
    try:
        await ready
    finally:
        loop.remove_reader(line.fileno())


async def take_header(transport: asyncio.Transport) -> str:
    """The IP address that the proxy passes on; empty where it calls for itself. The transport must not read yet.

    Raises `MalformedMessage`, or one of `NETWORK_ERRORS`.
    """
    header: ProxyHeader | None = None

    def length(came: bytes) -> int | None:
        nonlocal header
        header = read_header(came)
        return None if header is None else header.length

    await take_first(transport, HEADER_LIMIT, length)
    assert header is not None
    return header.caller
