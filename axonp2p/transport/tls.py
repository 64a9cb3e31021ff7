"""TLS as callers use it."""

from __future__ import annotations

import functools
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
