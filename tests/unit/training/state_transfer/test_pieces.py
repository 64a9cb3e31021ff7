"""A state in pieces: its name, and what is answered to those that ask."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.blobs.pieces import PIECE_BYTES, PieceBook, PieceHasher, book_of
from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import serve_pieces

DATA = bytes(range(256)) * 1024 * 2 + b"and a little more"


@dataclass(frozen=True)
class Held:
    data: bytes

    @cached_property
    def pieces(self) -> PieceBook:
        return book_of(self.data)

    @property
    def file(self) -> memoryview:
        return memoryview(self.data)


STATE, OTHER = Held(DATA), Held(b"other")


def test_a_state_is_named_by_the_hashes_of_its_pieces():
    whole = [DATA[:PIECE_BYTES], DATA[PIECE_BYTES : 2 * PIECE_BYTES], b"and a little more"]
    hashes = b"".join(blake3(piece).digest() for piece in whole)
    assert STATE.pieces.hashes == hashes
    assert STATE.pieces.name == hashlib.sha256(hashes).digest()
    assert all(STATE.pieces.fits(number, piece) for number, piece in enumerate(whole))
    assert not STATE.pieces.fits(1, whole[2])
    assert book_of(b"").name == hashlib.sha256().digest()


@given(st.lists(st.integers(0, len(DATA)), max_size=6))
def test_the_name_is_the_same_in_whatever_portions_the_bytes_come(cuts):
    hasher, edges = PieceHasher(), [0, *sorted(cuts), len(DATA)]
    for begin, end in pairwise(edges):
        hasher.update(DATA[begin:end])
    assert hasher.digest() == STATE.pieces.name


def test_who_holds_a_state_gives_the_list_and_the_pieces_without_copying_them():
    name = STATE.pieces.name
    assert serve_pieces([OTHER, STATE], AskPieces(state=name, numbers=[])) == [
        (PieceList(state=name), STATE.pieces.hashes)
    ]
    (last, first) = serve_pieces([OTHER, STATE], AskPieces(state=name, numbers=[2, 0]))
    assert last == (Piece(state=name, number=2), b"and a little more")
    assert first == (Piece(state=name, number=0), DATA[:PIECE_BYTES])
    assert isinstance(first[1], memoryview)
    assert first[1].obj is DATA


@pytest.mark.parametrize("numbers", [[], [7, 8]])
def test_who_does_not_hold_it_says_so_with_an_empty_piece(numbers):
    ask = AskPieces(state=STATE.pieces.name, numbers=numbers)
    assert serve_pieces([OTHER], ask) == [(Piece(state=ask.state, number=numbers[0] if numbers else 0), b"")]


@pytest.mark.parametrize("numbers", [[3], [0, 0]])
def test_pieces_that_are_not_there_or_asked_for_twice_are_a_breach(numbers):
    with pytest.raises(PeerMisbehaved):
        serve_pieces([STATE], AskPieces(state=STATE.pieces.name, numbers=numbers))
