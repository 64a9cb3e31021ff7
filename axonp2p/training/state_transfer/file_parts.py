"""A state's file in parts: cut on one side, put together and checked on the other. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.messages import PART_BYTES
from axonp2p.training.messages import FilePart


def cut(data: bytes | memoryview, sha256: bytes) -> Iterator[tuple[FilePart, memoryview]]:
    """The parts of a file, in order, without copying it."""
    view = memoryview(data)
    for offset in range(0, len(view), PART_BYTES):
        yield FilePart(offset=offset, total=len(view), sha256=sha256), view[offset : offset + PART_BYTES]


class Assembly:
    """One file on its way in from `sender`, of a size that is known beforehand."""

    def __init__(self, sender: str, size: int, sha256: bytes) -> None:
        self._sender = sender
        self._size = size
        self._sha256 = sha256
        self._data = bytearray()

    @property
    def sha256(self) -> bytes:
        """The hash that the file must have."""
        return self._sha256

    @property
    def complete(self) -> bool:
        """True when all parts are here."""
        return len(self._data) == self._size

    def add(self, part: FilePart, payload: bytes | memoryview) -> None:
        """Take the next part. Raises `PeerMisbehaved` for one of another file, out of order or too long."""
        fits = (part.total, part.sha256, part.offset) == (self._size, self._sha256, len(self._data))
        if not fits or not payload or len(self._data) + len(payload) > self._size:
            raise PeerMisbehaved(f"{self._sender} sent a part of a state that does not fit")
        self._data += payload

    def file(self) -> bytes:
        """The whole file, once complete. Raises `PeerMisbehaved` when it has another hash."""
        assert self.complete
        data = bytes(self._data)
        if hashlib.sha256(data).digest() != self._sha256:
            raise PeerMisbehaved(f"{self._sender} sent a file that does not have the hash it was announced with")
        return data
