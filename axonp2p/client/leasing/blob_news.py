"""The words of one peer about blobs, each handed to whoever brings it that blob."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from axonp2p.blobs.messages import BlobDropped, BlobGot, BlobHave, BlobLie, BlobReceived, BlobRefused
from axonp2p.errors import AxonError, Refused

BlobNews = BlobHave | BlobGot | BlobLie
"""A peer's news of a blob on its way."""
BlobWord = BlobHave | BlobGot | BlobLie | BlobReceived | BlobRefused | BlobDropped

Heard = Callable[[BlobNews], None]


class BlobDispatcher:
    """One lease's. Of a blob that nobody brings nothing is heard."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._heard: dict[bytes, Heard] = {}
        self._received: dict[bytes, asyncio.Future[None]] = {}
        self._dropped: dict[bytes, asyncio.Future[None]] = {}

    def expect(self, blob: bytes, heard: Heard) -> asyncio.Future[None]:
        """Before the blob is given: `heard` is told what the peer has of it, until it is dropped.

        The future is done when the peer has all; it raises what the peer refused with.
        """
        self._heard[blob] = heard
        self._received[blob] = asyncio.get_running_loop().create_future()
        return self._received[blob]

    def arrived(self, blob: bytes) -> None:
        """The whole blob is there, or will not be: what was expected is not awaited any more."""
        _close(self._received.pop(blob, None))

    def drop(self, blob: bytes) -> None:
        """Nothing is heard of it from now on: what the peer still says was said before it knew."""
        self.arrived(blob)
        self._heard.pop(blob, None)
        self._dropped.setdefault(blob, asyncio.get_running_loop().create_future())

    def dropping(self, blob: bytes) -> asyncio.Future[None] | None:
        """Is done when the peer has said that it dropped the blob; None if it was not told to, or has said so."""
        return self._dropped.get(blob)

    def heard(self, word: BlobWord) -> None:
        """The peer said something. Raises what whoever brings the blob raises."""
        blob = word.blob
        match word:
            case BlobDropped():
                if (dropped := self._dropped.pop(blob, None)) and not dropped.done():
                    dropped.set_result(None)
            case BlobReceived():
                if (received := self._received.get(blob)) and not received.done():
                    received.set_result(None)
            case BlobRefused(reason=reason):
                self._heard.pop(blob, None)
                if (received := self._received.get(blob)) and not received.done():
                    received.set_exception(Refused(f"peer {self._peer} does not take a blob: {reason}"))
            case _ if blob in self._heard:
                self._heard[blob](word)

    def fail(self, error: AxonError) -> None:
        """Nothing more comes, or the peer refused what it was given."""
        for future in (*self._received.values(), *self._dropped.values()):
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen, even if nobody waits for it


def _close(future: asyncio.Future[None] | None) -> None:
    if future and not future.cancel() and not future.cancelled():
        future.exception()  # seen, even if what was asked failed first
