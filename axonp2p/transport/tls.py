"""TLS as callers use it."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import ssl


@functools.cache
def client_context(*, verified: bool) -> ssl.SSLContext:
    """TLS 1.3 for callers: by the authorities of this machine, or unverified where a fingerprint is checked instead."""
    context = ssl.create_default_context() if verified else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def presented_fingerprint(host: str, port: int, within_s: float) -> bytes:
    """Of the certificate that answers there, to be shown to a person: it proves nothing by itself.

    Raises one of `foreign_errors.NETWORK_ERRORS`.
    """
    async with asyncio.timeout(within_s):
        _, writer = await asyncio.open_connection(host, port, ssl=client_context(verified=False))
        try:
            return fingerprint_shown(writer.get_extra_info("ssl_object"))
        finally:
            writer.close()


def fingerprint_shown(line: ssl.SSLObject | None) -> bytes:
    """Of the certificate that the other side has shown. Raises `ssl.SSLError` when it showed none."""
    certificate = line.getpeercert(binary_form=True) if line is not None else None
    if not certificate:
        raise ssl.SSLError("no certificate")
    return hashlib.sha256(certificate).digest()
