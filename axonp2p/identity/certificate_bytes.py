"""The bytes of our one kind of X.509 certificate (RFC 5280, RFC 8410), written by hand; its fingerprint. Decides only.

A library for all kinds would cost every daemon 9 MB of memory for these sixty lines; a test reads the result with one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

_SEQUENCE, _SET, _OBJECT, _INTEGER, _BITS, _OCTETS, _TEXT = 0x30, 0x31, 0x06, 0x02, 0x03, 0x04, 0x0C
_UTC_TIME, _LONG_TIME = 0x17, 0x18  # years before 2050, and from then on
_VERSION = 0xA0
_ED25519 = bytes((0x2B, 0x65, 0x70))  # 1.3.101.112
_COMMON_NAME = bytes((0x55, 0x04, 0x03))  # 2.5.4.3
# Its trust comes from the pin, not from its dates; the dates only have to hold.
_VALID_FROM, _VALID_UNTIL = b"240101000000Z", b"21240101000000Z"


def certificate_der(name: str, serial: int, public_key: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    """A certificate for the key and by the key whose 32 bytes are `public_key`; `sign` gives its 64-byte signatures."""
    algorithm = _der(_SEQUENCE, _der(_OBJECT, _ED25519))
    entry = _der(_SEQUENCE, _der(_OBJECT, _COMMON_NAME) + _der(_TEXT, name.encode()))
    names = _der(_SEQUENCE, _der(_SET, entry))
    to_sign = _der(
        _SEQUENCE,
        _der(_VERSION, _integer(2))  # the third
        + _integer(serial)
        + algorithm
        + names
        + _der(_SEQUENCE, _der(_UTC_TIME, _VALID_FROM) + _der(_LONG_TIME, _VALID_UNTIL))
        + names
        + _der(_SEQUENCE, algorithm + _bits(public_key)),
    )
    return _der(_SEQUENCE, to_sign + algorithm + _bits(sign(to_sign)))


def private_key_der(seed: bytes) -> bytes:
    """The 32 secret bytes as PKCS #8."""
    algorithm = _der(_SEQUENCE, _der(_OBJECT, _ED25519))
    return _der(_SEQUENCE, _integer(0) + algorithm + _der(_OCTETS, _der(_OCTETS, seed)))


def pem(title: str, der: bytes) -> bytes:
    """As text between two lines."""
    text = base64.b64encode(der).decode("ascii")
    lines = "\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    return f"-----BEGIN {title}-----\n{lines}\n-----END {title}-----\n".encode("ascii")


def _integer(value: int) -> bytes:
    # One bit more than it needs: the highest one is the sign.
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1))


def _bits(data: bytes) -> bytes:
    return _der(_BITS, b"\0" + data)


def _der(tag: int, content: bytes) -> bytes:
    if len(content) < 128:
        return bytes((tag, len(content))) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


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
