"""States, and starts of segments that it committed to: a member holds them, and others may ask for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.errors import MalformedMessage
from axonp2p.training.exchange.error_feedback import ErrorFeedback
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.step_scale import StepScale
from axonp2p.verification.rates import KEPT_ROUNDS


class HeldStates:
    """The candidate is where the last finished round led to: the next order names it, or the accepted one again."""

    def __init__(self, first: State, leftover: ErrorFeedback, scale: StepScale | None) -> None:
        self.accepted = first
        self.leftover = leftover
        """This member's, as it was in the accepted state; so is `scale`."""
        self.scale = scale
        self._candidate: tuple[State, ErrorFeedback, StepScale | None] | None = None
        self._lent: dict[int, State] = {}

    @property
    def candidate(self) -> State | None:
        """Where the last finished round led to, while it is not known whether it counts."""
        return self._candidate[0] if self._candidate else None

    def offer(self, candidate: State, leftover: ErrorFeedback, scale: StepScale | None) -> None:
        """A round has led to this."""
        self._candidate = candidate, leftover, scale

    def adopt(self, state: State) -> None:
        """Others have come to this state, and it is accepted. The leftover stays: it was never sent."""
        self.accepted, self._candidate = state, None

    def has(self, name: bytes) -> bool:
        """Whether a round can begin from it."""
        return name == self.accepted.name or (self._candidate is not None and name == self._candidate[0].name)

    def settle(self, name: bytes) -> bool:
        """Go on from this state: True when the candidate is accepted by it, False when the candidate is forgotten.

        Raises `MalformedMessage` for any other state.
        """
        candidate, self._candidate = self._candidate, None
        if candidate and name == candidate[0].name:
            self.accepted, self.leftover, self.scale = candidate
            return True
        if name != self.accepted.name:
            ours = self.accepted.name.hex()
            raise MalformedMessage(
                f"asked to continue from state {name.hex()[:12]}, but the accepted one is {ours[:12]}"
            )
        return False

    def all(self) -> list[State]:
        """Every state that is here."""
        return [self.accepted, *([self._candidate[0]] if self._candidate else []), *self._lent.values()]

    def lend(
        self, to: int, ask: AskPieces, more: Iterable[State]
    ) -> list[tuple[Piece | PieceList, bytes | memoryview]]:
        """The answer to a member that asks for pieces of these states or of `more`. Raises `PeerMisbehaved`."""
        held = [*self.all(), *more]
        answers = serve_pieces(held, ask)
        for state in held:
            if state.name == ask.state:
                self._lent[to] = state  # it is fetched while rounds go on, and needed to its last piece
        return answers

    def lend_to_listeners(self, listeners: Iterable[int]) -> None:
        """A round begins from the accepted state: who listens to it for the first time will fetch that one."""
        self._lent = {rank: self._lent.get(rank, self.accepted) for rank in listeners}


MOST_LENT = 3
"""Places that are held for longer, because somebody has begun to fetch them: as many as have a say in a dispute."""

Key = tuple[int, int]


class KeptPlaces:
    """Those of one member."""

    def __init__(self) -> None:
        self._rounds: dict[Key, list[MarkBytes]] = {}
        self._lent: list[MarkBytes] = []

    def keep(self, key: Key, places: list[MarkBytes]) -> None:
        """A round and attempt is done here. An attempt older than the last few is forgotten."""
        self._rounds[key] = places
        for old in sorted(self._rounds)[:-KEPT_ROUNDS]:
            del self._rounds[old]

    def named(self, name: bytes) -> MarkBytes | None:
        """The one with this name; None when it is none of them."""
        held = [*self._lent, *(place for places in self._rounds.values() for place in places)]
        return next((place for place in held if place.pieces.name == name), None)

    def serve(self, ask: AskPieces) -> list[tuple[PieceList | Piece, bytes | memoryview]] | None:
        """The answer to a member that asks for one of them; None when it is none of them. Raises `PeerMisbehaved`."""
        place = self.named(ask.state)
        if place is None:
            return None
        answers = serve_pieces([place], ask)
        if place not in self._lent:
            self._lent = [*self._lent[-MOST_LENT + 1 :], place]
        return answers
