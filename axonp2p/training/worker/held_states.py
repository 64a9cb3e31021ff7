"""The states that a member holds: the accepted one, the candidate, and what was lent to others. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.errors import MalformedMessage
from axonp2p.training.exchange.leftover import Leftover
from axonp2p.training.messages import AskPieces, Piece, PieceList
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.step_scale import StepScale


class HeldStates:
    """The candidate is where the last finished round led to: the next order names it, or the accepted one again."""

    def __init__(self, first: State, leftover: Leftover, scale: StepScale | None) -> None:
        self.accepted = first
        self.leftover = leftover
        """This member's, as it was in the accepted state; so is `scale`."""
        self.scale = scale
        self._candidate: tuple[State, Leftover, StepScale | None] | None = None
        self._lent: dict[int, State] = {}

    @property
    def candidate(self) -> State | None:
        """Where the last finished round led to, while it is not known whether it counts."""
        return self._candidate[0] if self._candidate else None

    def offer(self, candidate: State, leftover: Leftover, scale: StepScale | None) -> None:
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
            raise MalformedMessage(f"asked to go on from state {name.hex()[:12]}, but the accepted one is {ours[:12]}")
        return False

    def all(self) -> list[State]:
        """Every state that is here."""
        return [self.accepted, *([self._candidate[0]] if self._candidate else []), *self._lent.values()]

    def lend(
        self, to: int, ask: AskPieces, more: Iterable[State]
    ) -> list[tuple[Piece | PieceList, bytes | memoryview]]:
        """What to answer to a member that asks for pieces of these states or of `more`. Raises `PeerMisbehaved`."""
        held = [*self.all(), *more]
        answers = serve_pieces(held, ask)
        for state in held:
            if state.name == ask.state:
                self._lent[to] = state  # it is fetched while rounds go on, and needed to its last piece
        return answers

    def lend_to_listeners(self, listeners: Iterable[int]) -> None:
        """A round begins from the accepted state: who listens to it for the first time will fetch that one."""
        self._lent = {rank: self._lent.get(rank, self.accepted) for rank in listeners}
