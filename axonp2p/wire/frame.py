"""Frames: a small message and the large bytes that belong to it, in one piece.

    4 bytes   length of the header, big endian
    header    one msgpack message
    payload   the rest, raw bytes that are never decoded here

Tensors and files travel as payload, so they are neither copied through msgpack nor escaped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wire.codec import Message, encode

HEADER_LIMIT = 64 * 1024
PAYLOAD_LIMIT = 1024 * 1024
FRAME_LIMIT = 4 + HEADER_LIMIT + PAYLOAD_LIMIT
FRAME_COST = 256
"""The count of a frame beside its bytes, in every window, queue and credit: one that waits costs its receiver so much
memory and work however short it is."""

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Frame:
    """A header not yet decoded and its payload."""

    header: memoryview
    payload: memoryview


def pack_frame(message: Message, payload: bytes | memoryview = b"") -> bytes:
    """The bytes of one frame. Raises `MessageTooLarge` when ours would be over the limits."""
    return b"".join((frame_head(message, len(payload)), payload))


def frame_head(message: Message, payload_bytes: int) -> bytes:
    """All of a frame but its payload, which needs no copy where it can be written apart. Raises `MessageTooLarge`."""
    header = encode(message)
    if len(header) > HEADER_LIMIT or payload_bytes > PAYLOAD_LIMIT:
        raise MessageTooLarge(f"a frame of {len(header)} + {payload_bytes} bytes is over the limits")
    return _LENGTH.pack(len(header)) + header


def split_frame(data: bytes | memoryview) -> Frame:
    """Header and payload of a frame, without copying. Raises `MessageTooLarge` or `MalformedMessage`."""
    view = memoryview(data)
    if len(view) < 4:
        raise MalformedMessage("a frame has at least 4 bytes")
    (length,) = _LENGTH.unpack(view[:4])
    if length > HEADER_LIMIT or len(view) - 4 - length > PAYLOAD_LIMIT:
        raise MessageTooLarge(f"a frame of {len(view)} bytes with a header of {length} is over the limits")
    if len(view) < 4 + length:
        raise MalformedMessage("the frame ends inside its header")
    return Frame(view[4 : 4 + length], view[4 + length :])
