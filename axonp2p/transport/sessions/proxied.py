"""Takes the PROXY header off a connection before TLS is spoken on it (a door)."""

from __future__ import annotations

import asyncio

from axonp2p.transport.sessions.before_tls import take_first
from axonp2p.transport.sessions.proxy_header import HEADER_LIMIT, ProxyHeader, read_header


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
