"""The answers of a member that holds a state to those that fetch it in pieces (`blobs.pieces`). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from axonp2p.blobs.pieces import HASH_BYTES, PIECE_BYTES, PieceBook, piece_count
from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.wire.frame import PAYLOAD_LIMIT

MOST_STATE_BYTES = PAYLOAD_LIMIT // HASH_BYTES * PIECE_BYTES
"""8 GiB: the list of a larger state's hashes would not fit a frame."""


class Sliceable(Protocol):
    """Some bytes, which need not lie in memory side by side."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice) -> bytes | memoryview: ...


class InPieces(Protocol):
    """A state that others may fetch, or frozen parameters."""

    @property
    def pieces(self) -> PieceBook:
        """The hashes of its pieces."""

    @property
    def file(self) -> Sliceable:
        """Its bytes."""


def serve_pieces(states: Iterable[InPieces], ask: AskPieces) -> list[tuple[PieceList | Piece, bytes | memoryview]]:
    """The answers of a member that holds `states`: messages with their payloads, which are not copies.

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
