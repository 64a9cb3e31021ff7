"""What a member committed to and may be asked for: the starts of segments of its last rounds, in memory. Pure."""

from __future__ import annotations

from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.training.verification.rates import KEPT_ROUNDS

MOST_LENT = 3
"""Places that are held for longer, because somebody has begun to fetch them: as many as have a say in a dispute."""

Key = tuple[int, int]


class KeptPlaces:
    """Those of one member."""

    def __init__(self) -> None:
        self._rounds: dict[Key, list[MarkBytes]] = {}
        self._lent: list[MarkBytes] = []

    def keep(self, key: Key, places: list[MarkBytes]) -> None:
        """A round and attempt is done here. What is older than the last few is forgotten."""
        self._rounds[key] = places
        for old in sorted(self._rounds)[:-KEPT_ROUNDS]:
            del self._rounds[old]

    def named(self, name: bytes) -> MarkBytes | None:
        """The one with this name; None when it is none of them."""
        held = [*self._lent, *(place for places in self._rounds.values() for place in places)]
        return next((place for place in held if place.pieces.name == name), None)

    def serve(self, ask: AskPieces) -> list[tuple[PieceList | Piece, bytes | memoryview]] | None:
        """What to answer to who asks for one of them; None when it is none of them. Raises `PeerMisbehaved`."""
        place = self.named(ask.state)
        if place is None:
            return None
        answers = serve_pieces([place], ask)
        if place not in self._lent:
            self._lent = [*self._lent[-MOST_LENT + 1 :], place]
        return answers
