"""One aiohttp client pinned to one certificate: what `http_caller` and `dialer` have in common."""

from __future__ import annotations

import functools
import ssl

import aiohttp


@functools.cache
def client_context(*, verified: bool) -> ssl.SSLContext:
    """TLS 1.3 for callers: by the authorities of this machine, or unverified where a fingerprint is checked instead."""
    context = ssl.create_default_context() if verified else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def open_client(
    fingerprint: bytes | None, *, local_address: str | None, timeout_s: float, connections: int
) -> aiohttp.ClientSession:
    """A client that speaks to nobody but the holder of the pinned certificate.

    The fingerprint is checked by aiohttp after the TLS handshake and before the first byte of a request. Requests
    must carry `ssl=client_context(verified=fingerprint is None)`: aiohttp takes the pin from the connector and the
    TLS settings from the request.
    """
    connector = aiohttp.TCPConnector(
        ssl=True if fingerprint is None else aiohttp.Fingerprint(fingerprint),
        local_addr=None if local_address is None else (local_address, 0),
        limit=connections,
        keepalive_timeout=60,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A compressed answer could be a thousand times larger than the cap that its bytes were held to.
        auto_decompress=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "axon"},
    )
