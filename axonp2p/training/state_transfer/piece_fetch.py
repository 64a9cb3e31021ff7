"""A state on its way in from several members at once, piece by piece. Pure: times are passed in, in seconds.

    ask one member for the list of hashes, check it against the state's name
    keep a few pieces under way with each of several members, more with faster ones
    pieces of zeros are known by their hash: nobody is asked for them
    what is late is asked elsewhere as well; the piece that comes first is taken, once its hash fits
    who sent wrong bytes is named and never asked again; who does not hold the state is asked no more

At the end, who has nothing left to send takes over pieces that a much slower member still has before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NoReturn

from axonp2p.blobs.piece_sender import FIRST_UNDER_WAY, PieceSender
from axonp2p.blobs.pieces import HASH_BYTES, PIECE_BYTES, PieceBook, piece_count
from axonp2p.errors import PeerMisbehaved
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import MOST_STATE_BYTES

MOST_SENDERS = 8
"""Asked at the same time; more only share the same line."""
PATIENCE_S = 10.0
_LIST = -1
"""The list of hashes is fetched like a piece, before all others."""

Asks = list[tuple[int, AskPieces]]
"""What to say to which rank."""


class PieceFetch:
    """One state of a known size on its way in. After every call say what it gives back."""

    def __init__(
        self, state: bytes, size: int, patience: float = PATIENCE_S, room: bytearray | memoryview | None = None
    ) -> None:
        """`state` is its name, `size` in bytes; pieces are put in `room`, which is all zeros, if given.

        Raises `ValueError` above `MOST_STATE_BYTES`.
        """
        if size > MOST_STATE_BYTES:
            raise ValueError(f"a state of {size} bytes; at most {MOST_STATE_BYTES} can be fetched")
        self.state = state
        self.liars: dict[int, str] = {}
        """Who sent wrong bytes, and what about them was wrong."""
        self._size = size
        self._patience = patience
        self._book: PieceBook | None = None
        self._room = room
        self._data: bytearray | memoryview = bytearray()
        self._missing = {_LIST}
        self._todo = [_LIST]  # a heap of what is missing and not under way; may name others too
        self._senders: dict[int, PieceSender] = {}
        self._present: list[int] = []
        self._stirred_at: float | None = None

    @property
    def complete(self) -> bool:
        """Whether all is here."""
        return not self._missing

    @property
    def nobody_left(self) -> bool:
        """Whether something is missing and there is no member to ask."""
        return bool(self._missing) and not self._present

    @property
    def fetched(self) -> int:
        """How many bytes are here."""
        return self._size - min(self._size, len(self._missing) * PIECE_BYTES) if self._book else 0

    def data(self) -> memoryview:
        """The state, once complete (not a copy)."""
        assert self.complete
        return memoryview(self._data)

    def senders(self, ranks: Iterable[int], now: float) -> Asks:
        """These hold the state, and no others. Pieces that are here stay; who lied stays out."""
        present = [rank for rank in ranks if rank not in self.liars]
        for rank in set(self._present) - set(present):
            self._drop(rank)
        self._present = present
        for rank in present:
            self._senders.setdefault(rank, PieceSender(self._patience))
        return self._asks(now)

    def lost(self, rank: int, now: float) -> Asks:
        """A member has gone, or cannot be reached."""
        self._drop(rank)
        return self._asks(now)

    def hear(self, sender: int, message: Piece | PieceList, payload: bytes | memoryview, now: float) -> Asks:
        """Either of the next two."""
        if isinstance(message, PieceList):
            return self.hear_list(sender, message, payload, now)
        return self.hear_piece(sender, message, payload, now)

    def hear_list(self, sender: int, message: PieceList, payload: bytes | memoryview, now: float) -> Asks:
        """A list of hashes came. Raises `PeerMisbehaved`: unasked, or not of this state."""
        if message.state != self.state:
            return []  # of a state that was fetched before this one
        self._check_asked(sender, _LIST)
        book = PieceBook(bytes(payload))
        if len(payload) != piece_count(self._size) * HASH_BYTES or book.name != self.state:
            self._name(sender, "a list of pieces that is not that of the state", now)
        if self._book is None:
            self._book = book
            self._data = bytearray(self._size) if self._room is None else self._room
            # Momentum that a job does not use is half of its state.
            self._missing = set(range(piece_count(self._size))) - book.of_zeros()
            self._todo = sorted(self._missing)
        self._heard(sender, _LIST, now)
        return self._asks(now)

    def hear_piece(self, sender: int, piece: Piece, payload: bytes | memoryview, now: float) -> Asks:
        """A piece came; an empty one says that the sender does not hold the state. Raises `PeerMisbehaved`.

        After that error `deadline()` is now: what the one that is named should have sent is asked elsewhere by `due`.
        """
        if piece.state != self.state:
            return []
        if not payload and sender in self._senders:
            return self.lost(sender, now)
        self._check_asked(sender, piece.number)
        assert self._book is not None
        begin = piece.number * PIECE_BYTES
        end = min(begin + PIECE_BYTES, self._size)
        if len(payload) != end - begin or not self._book.fits(piece.number, payload):
            self._name(sender, f"piece {piece.number} with other bytes than the state has", now)
        if piece.number in self._missing:
            self._data[begin:end] = payload
            self._missing.discard(piece.number)
        self._heard(sender, piece.number, now)
        return self._asks(now)

    def due(self, now: float) -> Asks:
        """Time has passed."""
        self._stirred_at = None
        for rank in self._present:
            sender = self._senders[rank]
            if sender.due(now, self._missing):
                self._want(sender.under_way)
        return self._asks(now)

    def deadline(self) -> float | None:
        """When to call `due` next, if nothing is heard before."""
        if self.complete:
            return None
        times = [self._senders[rank].deadline() for rank in self._present]
        return min((time for time in (*times, self._stirred_at) if time is not None), default=None)

    # --- whom to ask for what ---

    def _asks(self, now: float) -> Asks:
        """New asks for all that have room, the fastest first."""
        if self.complete:
            return []
        awake = [rank for rank in self._present if not self._senders[rank].resting]
        awake.sort(key=lambda rank: (self._senders[rank].silences, -(self._senders[rank].rate or 0.0)))
        awake = awake[:MOST_SENDERS]
        asks = []
        for rank in awake:
            sender = self._senders[rank]
            numbers = sender.to_try() or self._next(min(sender.room, self._share(len(awake))))
            if not numbers and sender.room and not sender.under_way:
                numbers = self._to_take_over(sender)
            if numbers:
                sender.ask(numbers, now)
                numbers = [number for number in numbers if number != _LIST]
                asks.append((rank, AskPieces(state=self.state, numbers=numbers)))
        return asks

    def _share(self, senders: int) -> int:
        """What one of them may be asked for at once, so that near the end all have something to do."""
        return max(FIRST_UNDER_WAY, len(self._todo) // senders)

    def _next(self, most: int) -> list[int]:
        """Pieces that are missing and not on their way, no longer to be done."""
        numbers: list[int] = []
        while self._todo and len(numbers) < most:
            number = heapq.heappop(self._todo)
            if number in self._missing and number not in numbers and not self._on_its_way(number):
                numbers.append(number)
        return numbers

    def _to_take_over(self, idle: PieceSender) -> list[int]:
        """The piece that is expected last, if `idle` would have it in less than half of the time."""
        awake = [sender for rank in self._present if not (sender := self._senders[rank]).resting]
        slowest = max(awake, key=lambda sender: sender.needs if sender.under_way else 0.0)
        once = [number for number in slowest.under_way if number in self._missing and self._on_its_way(number) == 1]
        return [max(once)] if once and idle.pace is not None and 2 * idle.pace < slowest.needs else []

    def _on_its_way(self, number: int) -> int:
        """From how many."""
        return sum(self._senders[rank].expects(number) for rank in self._present)

    def _want(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._missing:
                heapq.heappush(self._todo, number)

    def _heard(self, rank: int, number: int, now: float) -> None:
        self._want(self._senders[rank].heard(number, now, learn=number != _LIST))

    def _drop(self, rank: int) -> None:
        if rank in self._present:
            self._present.remove(rank)
            self._want(self._senders[rank].under_way)
            self._senders[rank].reset()

    # --- what others may say ---

    def _check_asked(self, sender: int, number: int) -> None:
        if sender not in self._senders or number not in self._senders[sender].asked:
            raise PeerMisbehaved(f"rank {sender} sent a piece that it was not asked for")

    def _name(self, sender: int, what: str, now: float) -> NoReturn:
        self.liars[sender] = what
        self._drop(sender)
        self._stirred_at = now
        raise PeerMisbehaved(f"rank {sender} sent {what}")
