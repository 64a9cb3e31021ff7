"""Peer ids: a public Ed25519 key as 52 lower-case base32 letters without padding."""

from __future__ import annotations

import base64
import re
from typing import Annotated

import msgspec

ID_LENGTH = 52
SHORT_LENGTH = 8
_PATTERN = r"^[a-z2-7]{51}[aq]\Z"  # the last letter has one bit only; $ would let a line end pass

_ID = re.compile(_PATTERN)
_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")

PeerId = Annotated[str, msgspec.Meta(pattern=_PATTERN)]
PeerIdOrNone = Annotated[str, msgspec.Meta(pattern=r"^([a-z2-7]{51}[aq])?\Z")]
"""Empty where it is not known."""


def peer_id_of(public_key: bytes) -> PeerId:
    """The id of a 32-byte public key."""
    if len(public_key) != 32:
        raise ValueError(f"a public key has 32 bytes, not {len(public_key)}")
    return base64.b32encode(public_key).decode().rstrip("=").lower()


def public_key_of(peer_id: PeerId) -> bytes:
    """The 32-byte public key that an id stands for; ValueError when it is no id."""
    if not _ID.fullmatch(peer_id):
        raise ValueError("a peer id has 52 letters out of a-z and 2-7")
    # As one number in base 32, which int() reads six times as fast as base64.b32decode does.
    bits = int(peer_id.translate(_DIGITS), 32)
    if bits & 0b1111:  # the last letter has spare bits: only one spelling is the name
        raise ValueError("not the canonical spelling of a peer id")
    return (bits >> 4).to_bytes(32, "big")


def short(peer_id: PeerId) -> str:
    """The first letters, for people's eyes."""
    return peer_id[:SHORT_LENGTH]
