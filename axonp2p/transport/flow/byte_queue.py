"""A queue of messages that is bounded in number and in bytes: whoever puts in waits, as with any full queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from axonp2p.wire.frame import FRAME_COST

T = TypeVar("T")


class ByteQueue(asyncio.Queue[T]):
    """Full with `most_bytes` in it, each message with its fixed cost; one message may pass the bound."""

    def __init__(self, most_bytes: int, size_of: Callable[[T], int]) -> None:
        """`size_of` gives the bytes of a message, without its fixed cost."""
        super().__init__()
        self._most_bytes = most_bytes
        self._size_of = size_of
        self.bytes = 0
        """In it now, with their costs."""

    def full(self) -> bool:
        """Whether the next one has to wait."""
        return self.bytes >= self._most_bytes

    def _put(self, item: T) -> None:
        self.bytes += self._size_of(item) + FRAME_COST
        super()._put(item)

    def _get(self) -> T:
        item = super()._get()
        self.bytes -= self._size_of(item) + FRAME_COST
        return item
