"""One aiohttp client pinned to one certificate: what `http_caller` and `dialer` have in common (a door)."""

from __future__ import annotations

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.tunnel.tunnel import TunnelConnector
from axonp2p.transport.ways import Way


def open_client(
    way: Way, *, local_address: str | None, timeout_s: float, connections: int, policy: DialPolicy | None = None
) -> aiohttp.ClientSession:
    """A client that speaks to nobody but the holder of the pinned certificate, on that way.

    With a `policy` the way is a stranger's word, and no address that it does not allow is dialled, whatever a name is
    resolved to. (`ways_to` has asked it about the addresses of rows, which are no names.)

    The fingerprint is checked after the TLS handshake and before the first byte of a request. Requests must carry
    `ssl=client_context(verified=way.address.fingerprint is None)`: aiohttp takes the pin from the connector and the
    TLS settings from the request.
    """
    return aiohttp.ClientSession(
        connector=_connector(way, local_address, connections, policy),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A compressed answer could be a thousand times larger than the cap that its bytes were held to.
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "axon"},
    )


def _connector(
    way: Way, local_address: str | None, connections: int, policy: DialPolicy | None
) -> aiohttp.BaseConnector:
    if way.relay is not None:
        return TunnelConnector(way.relay, way.address, local_address=local_address, connections=connections)
    fingerprint = way.address.fingerprint
    return aiohttp.TCPConnector(
        ssl=True if fingerprint is None else aiohttp.Fingerprint(fingerprint),
        local_addr=None if local_address is None else (local_address, 0),
        limit=connections,
        keepalive_timeout=60,
        resolver=None if policy is None else _AllowedOnly(policy),
    )


class _AllowedOnly(AbstractResolver):
    """Names lead to those of their addresses alone that may be dialled on a stranger's word."""

    def __init__(self, policy: DialPolicy) -> None:
        self._policy = policy
        self._resolver = aiohttp.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises `OSError` when none is left."""
        found = await self._resolver.resolve(host, port, family)
        allowed = [one for one in found if self._policy.allows(one["host"])]
        if not allowed:
            raise OSError(None, "that name leads to no address that may be dialled from here")
        return allowed

    async def close(self) -> None:
        """Nothing is held."""
        await self._resolver.close()
