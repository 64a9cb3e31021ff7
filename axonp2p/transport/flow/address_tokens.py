"""Tokens that prove an address (pure): whoever shows one has heard an answer that was sent there.

A datagram's sender is easily forged. A token is a MAC over the address and a span of time, with a secret that never
leaves: nothing is remembered of anybody to whom one was given, and a flood of questions fills no memory.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache, partial

TOKEN_BYTES = 8
TOKEN_LIFE_S = 300
"""A token counts in the span of this many seconds in which it was given, and in the next."""


class AddressTokens:
    """Those of one program. Times are Unix seconds; `secret` has 16 to 64 random bytes, new at each start."""

    def __init__(self, secret: bytes) -> None:
        # A caller that was just told one shows it next.
        self._token = lru_cache(maxsize=1024)(partial(_token, secret))

    def token_for(self, host: str, now: float) -> bytes:
        """8 bytes for the next 5 to 10 minutes."""
        return self._token(host, int(now) // TOKEN_LIFE_S)

    def knows(self, host: str, token: bytes, now: float) -> bool:
        """Whether `host` has heard an answer lately, so that its address is no forged one."""
        span = int(now) // TOKEN_LIFE_S
        return hmac.compare_digest(token, self._token(host, span)) or hmac.compare_digest(
            token, self._token(host, span - 1)
        )


def _token(secret: bytes, host: str, span: int) -> bytes:
    return hashlib.blake2b(b"%d/%b" % (span, host.encode()), key=secret, digest_size=TOKEN_BYTES).digest()
