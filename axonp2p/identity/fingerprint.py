"""Fingerprints: the SHA-256 of a certificate, as 32 bytes and as text."""

from __future__ import annotations

import base64

FINGERPRINT_BYTES = 32


def fingerprint_text(fingerprint: bytes) -> str:
    """A fingerprint as 52 base32 letters, as it stands after the # of a tracker's address."""
    return base64.b32encode(fingerprint).decode().rstrip("=").lower()


def fingerprint_of_text(text: str) -> bytes:
    """The 32 bytes behind `fingerprint_text`; ValueError when it is none."""
    raw = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    if len(raw) != FINGERPRINT_BYTES:
        raise ValueError("a fingerprint has 52 letters out of a-z and 2-7")
    return raw
