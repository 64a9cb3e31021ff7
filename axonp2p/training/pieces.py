"""A state in pieces: how it is named by them, and what a member that holds it answers to those that fetch it. Pure.

A state's name is the SHA-256 of the SHA-256s of its pieces, a hash tree of one level (Merkle, "A Digital Signature
Based on a Conventional Encryption Function", 1987). So who knows only the name can check the list of hashes by it, and
then every piece by itself: pieces come from several members at once, and a wrong one is known before the rest is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.wire.frame import PAYLOAD_LIMIT

PIECE_BYTES = 256 * 1024
HASH_BYTES = 32
MOST_STATE_BYTES = PAYLOAD_LIMIT // HASH_BYTES * PIECE_BYTES
"""8 GiB: the list of a larger state's hashes would not fit a frame."""


def piece_count(size: int) -> int:
    """Into how many pieces so many bytes are cut; all but the last are full."""
    return -(-size // PIECE_BYTES)


@dataclass(frozen=True)
class PieceBook:
    """What the pieces of one state must hash to."""

    hashes: bytes
    """SHA-256 of every piece, one after the other."""

    @property
    def name(self) -> bytes:
        """The state's name."""
        return hashlib.sha256(self.hashes).digest()

    def fits(self, number: int, piece: bytes | memoryview) -> bool:
        """Whether these bytes are that piece."""
        return hashlib.sha256(piece).digest() == self.hashes[number * HASH_BYTES : (number + 1) * HASH_BYTES]


class PieceHasher:
    """Makes the book of a state whose bytes come in portions of any size, at the pace of one SHA-256 over them."""

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._piece = hashlib.sha256()
        self._room = PIECE_BYTES

    def update(self, data: bytes | memoryview) -> None:
        """The next bytes of the state."""
        rest = memoryview(data)
        while rest:
            portion, rest = rest[: self._room], rest[self._room :]
            self._piece.update(portion)
            self._room -= len(portion)
            if not self._room:
                self._hashes += self._piece.digest()
                self._piece, self._room = hashlib.sha256(), PIECE_BYTES

    def digest(self) -> bytes:
        """The state's name."""
        return self.book().name

    def book(self) -> PieceBook:
        """The book of all bytes until now."""
        open_piece = self._piece.digest() if self._room < PIECE_BYTES else b""
        return PieceBook(bytes(self._hashes) + open_piece)


def book_of(data: bytes | memoryview) -> PieceBook:
    """The book of a state that is all there."""
    hasher = PieceHasher()
    hasher.update(data)
    return hasher.book()


class InPieces(Protocol):
    """A state that others may fetch."""

    @property
    def pieces(self) -> PieceBook:
        """The hashes of its pieces."""

    @property
    def file(self) -> memoryview:
        """Its bytes."""


def serve_pieces(states: Iterable[InPieces], ask: AskPieces) -> list[tuple[PieceList | Piece, bytes | memoryview]]:
    """What a member that holds `states` answers: messages with their payloads, which are not copies.

    Raises `PeerMisbehaved` for numbers that a state does not have, or one that is asked for twice at once.
    """
    state = next((state for state in states if state.pieces.name == ask.state), None)
    if state is None:
        return [(Piece(state=ask.state, number=ask.numbers[0] if ask.numbers else 0), b"")]
    if not ask.numbers:
        return [(PieceList(state=ask.state), state.pieces.hashes)]
    data = state.file
    if max(ask.numbers) >= piece_count(len(data)) or len(set(ask.numbers)) < len(ask.numbers):
        raise PeerMisbehaved("an ask for pieces that a state does not have, or for one twice")
    return [
        (Piece(state=ask.state, number=number), data[number * PIECE_BYTES : (number + 1) * PIECE_BYTES])
        for number in ask.numbers
    ]
