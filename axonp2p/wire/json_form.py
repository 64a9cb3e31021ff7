"""JSON to typed values: files of our homes, and the few pages that programs of ours answer with JSON."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def decode_json(data: bytes, kind: type[T]) -> T:
    """The value of type `kind`. Raises `msgspec.DecodeError` and nothing else, whatever the bytes are."""
    hashable: Any = kind
    try:
        value: T = _decoder(hashable).decode(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error
    return value


def ready_to_decode(kind: Any) -> None:
    """Learn now how this type is decoded. To be called where a module with types that several threads decode is loaded.

    msgspec learns it at the first decoding, and two threads that do so at the same moment end the process (0.22.0).
    """
    _decoder(kind)


@lru_cache(maxsize=128)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
