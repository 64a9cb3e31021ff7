"""Takes the PROXY header off a connection before TLS is spoken on it (a door)."""

from __future__ import annotations

import asyncio
import os
import socket

from axonp2p.transport.sessions.proxy_header import HEADER_LIMIT, read_header

WITHIN_S = 3.0
"""A proxy sends it with its first packet."""
_REST_S = 0.02
"""Until the rest of a header is looked for that came in two packets."""


async def take_header(transport: asyncio.Transport) -> str:
    """The IP address that the proxy passes on; empty where it calls for itself. The transport must not read yet.

    Raises `MalformedMessage`, or one of `NETWORK_ERRORS`.
    """
    # The transport could only give the header together with the beginning of TLS: its socket is looked into, and only
    # the header taken out.
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as line:
        line.setblocking(False)
        async with asyncio.timeout(WITHIN_S):
            while True:
                await _readable(line)
                came = line.recv(HEADER_LIMIT, socket.MSG_PEEK)
                if not came:
                    raise ConnectionResetError
                header = read_header(came)
                if header is not None:
                    line.recv(header.length)
                    return header.caller
                await asyncio.sleep(_REST_S)


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
