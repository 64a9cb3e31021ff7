"""Typed messages to msgpack and back: bounded, then decoded as their type says and no further.

Lengths are compared with their bounds before anything of that length is made, depth is that of the type, floats are
finite (`quantities`). Where a map has one key twice, the last one counts, for every reader.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgpack
import msgspec

from axonp2p.errors import MalformedMessage, MessageTooLarge

PROTOCOL_VERSION = 2
"""Of sessions: it grows when two sides could not even tell each other that they differ (`wire.schema`)."""
_LONGEST_REASON = 300
_OF_ANOTHER_VERSION = ("unknown field", "missing required field", "Invalid value")
"""In what is said of a message that may be sound in another version: a field or a message that is lacking here."""
_SAME_VERSION = f"""install the same version of axonp2p on both sides; this one speaks protocol {PROTOCOL_VERSION}"""

T = TypeVar("T")


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of everything that travels. Fields that a message does not have are refused, not ignored."""


def encode(message: Message) -> bytes:
    """The msgpack form of a message."""
    packed: bytes = msgpack.packb(msgspec.to_builtins(message, builtin_types=(bytes,)))
    return packed


def decode(data: bytes | memoryview, kind: Any, limit: int) -> Any:
    """The message of type `kind` in `data`, which may have at most `limit` bytes.

    `kind` may be a union of tagged messages; annotate the variable that takes the result, or use `decode_as`.
    Raises `MessageTooLarge` or `MalformedMessage`; no other error, whatever the bytes are.
    """
    if len(data) > limit:
        raise MessageTooLarge(f"{len(data)} bytes where at most {limit} are allowed")
    try:
        return _decoder(kind).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        reason = str(error)[:_LONGEST_REASON]
        fix = _SAME_VERSION if any(sign in reason for sign in _OF_ANOTHER_VERSION) else ""
        raise MalformedMessage(f"not a {_name(kind)}: {reason}", fix=fix) from error


@lru_cache(maxsize=512)
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of bytes by their type, and nothing else: no list, map or depth that it does not allow is made."""
    return msgspec.msgpack.Decoder(kind)


def decode_as(data: bytes | memoryview, kind: type[T], limit: int) -> T:
    """`decode` for one message type, with its type for the reader and the type checker."""
    message: T = decode(data, kind, limit)
    return message


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or "message of this conversation"
