"""One aiohttp client pinned to one certificate: what `http_caller` and `dialer` have in common."""

from __future__ import annotations

import aiohttp

from axonp2p.transport.relay.tunnel import TunnelConnector
from axonp2p.transport.ways import Way


def open_client(way: Way, *, local_address: str | None, timeout_s: float, connections: int) -> aiohttp.ClientSession:
    """A client that speaks to nobody but the holder of the pinned certificate, on that way.

    The fingerprint is checked after the TLS handshake and before the first byte of a request. Requests must carry
    `ssl=client_context(verified=way.address.fingerprint is None)`: aiohttp takes the pin from the connector and the
    TLS settings from the request.
    """
    return aiohttp.ClientSession(
        connector=_connector(way, local_address, connections),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A compressed answer could be a thousand times larger than the cap that its bytes were held to.
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "axon"},
    )


def _connector(way: Way, local_address: str | None, connections: int) -> aiohttp.BaseConnector:
    if way.relay is not None:
        return TunnelConnector(way.relay, way.address, local_address=local_address, connections=connections)
    fingerprint = way.address.fingerprint
    return aiohttp.TCPConnector(
        ssl=True if fingerprint is None else aiohttp.Fingerprint(fingerprint),
        local_addr=None if local_address is None else (local_address, 0),
        limit=connections,
        keepalive_timeout=60,
    )
