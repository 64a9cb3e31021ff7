"""A state, or frozen parameters, on the way in from several members at once, piece by piece (`piece_picker`). Pure.

Times are passed in.

ask one member for the list of hashes, check it against the state's name
then all for pieces, in their order: every member that holds the state has all of it
pieces of zeros are known by their hash: nobody is asked for them
who does not hold the state is asked no more
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from axonp2p.blobs.piece_picker import PiecePicker
from axonp2p.blobs.pieces import HASH_BYTES, PIECE_BYTES, PieceBook, piece_count
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import MOST_STATE_BYTES

_LIST = -1
"""The list of hashes is fetched like a piece, before all others."""

Asks = list[tuple[int, AskPieces]]
"""The messages, and the ranks that they go to."""


class PieceFetch(PiecePicker[AskPieces]):
    """One state of a known size on its way in."""

    most_senders = 8  # more only share the same line

    def __init__(self, state: bytes, size: int, room: bytearray | memoryview | None = None) -> None:
        """`state` is its name, `size` in bytes; pieces are put in `room`, which is all zeros, if given.

        Raises `ValueError` above `MOST_STATE_BYTES`.
        """
        if size > MOST_STATE_BYTES:
            raise ValueError(f"a state of {size} bytes; at most {MOST_STATE_BYTES} can be fetched")
        super().__init__({_LIST})
        self.state = state
        self._size = size
        self._book: PieceBook | None = None
        self._room = room
        self._data: bytearray | memoryview = bytearray()
        self._todo = [_LIST]  # a heap of what is wanted; may name others too

    @property
    def complete(self) -> bool:
        """Whether all is here."""
        return not self._missing

    @property
    def nobody_left(self) -> bool:
        """Whether something is missing and there is no member to ask."""
        return bool(self._missing) and not self._present

    def data(self) -> memoryview:
        """The state, once complete (not a copy)."""
        assert self.complete
        return memoryview(self._data)

    @property
    def pieces(self) -> PieceBook:
        """The hashes of its pieces, once complete."""
        assert self._book is not None
        return self._book

    def senders(self, ranks: Iterable[int], now: float) -> Asks:
        """These hold the state, and no others. Pieces that are here stay; who lied stays out."""
        present = [rank for rank in ranks if rank not in self.liars]
        for rank in self._present.keys() - present:
            self._drop(rank)
        for rank in present:
            self._join(rank)
        return self.asks(now)

    def hear(self, sender: int, message: Piece | PieceList, payload: bytes | memoryview, now: float) -> Asks:
        """A piece came, or the list of hashes; an empty piece says that the sender does not hold the state.

        Raises `PeerMisbehaved`: unasked, or not of this state.
        """
        if message.state != self.state:
            return []  # one that was fetched before this one
        if isinstance(message, PieceList):
            self._check_asked(sender, _LIST)
            self._list_came(sender, payload, now)
            self._heard(sender, _LIST, now, learn=False)
        elif not payload and sender in self._senders:
            self._drop(sender)
        else:
            self._check_asked(sender, message.number)
            self._piece_came(sender, message.number, payload, now)
            self._heard(sender, message.number, now, learn=True)
        return self.asks(now)

    def _list_came(self, sender: int, payload: bytes | memoryview, now: float) -> None:
        book = PieceBook(bytes(payload))
        if len(payload) != piece_count(self._size) * HASH_BYTES or book.name != self.state:
            self._name(sender, "a list of pieces that is not that of the state", now)
        if self._take(_LIST):
            self._book = book
            self._data = bytearray(self._size) if self._room is None else self._room
            # Momentum that a job does not use is half of its state.
            self._missing = set(range(piece_count(self._size))) - book.of_zeros()
            self._wanted, self._todo = set(self._missing), sorted(self._missing)

    def _piece_came(self, sender: int, number: int, payload: bytes | memoryview, now: float) -> None:
        assert self._book is not None
        begin = number * PIECE_BYTES
        end = min(begin + PIECE_BYTES, self._size)
        if len(payload) != end - begin or not self._book.fits(number, payload):
            self._name(sender, f"piece {number} with other bytes than the state has", now)
        if self._take(number):
            self._data[begin:end] = payload

    def _next(self, rank: int, most: int) -> list[int]:
        numbers: list[int] = []
        while self._todo and len(numbers) < most:
            number = heapq.heappop(self._todo)
            if number in self._wanted and number not in numbers:
                numbers.append(number)
        return numbers

    def _want(self, numbers: Iterable[int]) -> None:
        super()._want(numbers)
        for number in self._wanted.intersection(numbers):
            heapq.heappush(self._todo, number)

    def _has(self, rank: int, number: int) -> bool:
        return True

    def _ask_for(self, numbers: list[int]) -> AskPieces:
        return AskPieces(state=self.state, numbers=[number for number in numbers if number != _LIST])
