"""How much of the disk the files of one lease may take: its bundle and all further blobs, together."""

from __future__ import annotations

import threading

from axonp2p.blobs.messages import MOST_BLOBS
from axonp2p.errors import LimitReached
from axonp2p.plain_text import bytes_text

KEPT_FREE_BYTES = 256 * 2**20
"""A job never gets the last of the volunteer's disk, whatever their limit says."""


class LeaseRoom:
    """One lease's. Used from several threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._turn = threading.Lock()
        self._taken = self._awaited = self._blobs = 0

    def take(self, size: int, free: int) -> None:
        """Hold room for a blob of so many bytes, where the disk has `free` bytes free. Raises `LimitReached`."""
        with self._turn:
            if self._blobs > MOST_BLOBS:
                raise LimitReached(f"this peer holds {MOST_BLOBS} blobs of one job; drop one first")
            if self._taken + size > self._limit:
                left = bytes_text(self._limit - self._taken)
                raise LimitReached(f"{bytes_text(size)}, and this job may store {left} more here")
            if size + self._awaited + KEPT_FREE_BYTES > free:
                raise LimitReached(f"this peer's disk has no room for {bytes_text(size)}")
            self._taken += size
            self._awaited += size
            self._blobs += 1

    def arrived(self, count: int) -> None:
        """So many bytes of what was taken room for are on the disk."""
        with self._turn:
            self._awaited -= count

    def give_back(self, size: int, missing: int) -> None:
        """A blob of `size` bytes is gone, of which `missing` had not arrived."""
        with self._turn:
            self._taken -= size
            self._awaited -= missing
            self._blobs -= 1
