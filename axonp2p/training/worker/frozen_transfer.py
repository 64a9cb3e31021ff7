"""How a member comes to the frozen parameters of its job, when its own `model()` made others. Pure.

    it has come to a state -> the state names their file -> its own: nothing is fetched
                                                          -> another: their pieces, as those of a state
    all pieces are here    -> the trainer puts them into the model -> it says that it has come to the state

Processors and versions of libraries differ in which numbers a seed draws, so most members fetch nothing, and a few all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from axonp2p.blobs.pieces import piece_count
from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.flat import frozen_name
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.messages import AskPieces, Piece, PieceList, StateAdopted
from axonp2p.training.state_transfer.piece_fetch import PieceFetch
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.trainer_orders import TakeFrozen
from axonp2p.training.worker.member_actions import COORDINATOR, Action, SayToCoordinator, tell_each

MOST_TIMES = 4
"""No member is sent more than this many times as much as there is: pieces that span tensors are copies here."""


class FrozenTransfer:
    """The frozen parameters of one member; `held` are those of its model."""

    def __init__(self, held: FrozenTensors) -> None:
        self._held = held
        self._asked: Counter[int] = Counter()
        """By rank, for how many pieces."""
        self._senders: list[int] = []
        self._state: State | None = None
        """To which it has come, while its model lacks the frozen parameters that belong to it."""
        self._fetch: PieceFetch | None = None
        """Of what that state needs, or the one before it needed."""
        self._taking = False
        """Whether the trainer puts them into the model."""

    # --- those of others ---

    def senders(self, ranks: Iterable[int], now: float) -> Iterator[Action]:
        """These hold what the job has."""
        self._senders = list(ranks)
        if self._fetch:
            yield from tell_each(self._fetch.senders(self._senders, now))

    def fits(self, state: State) -> bool:
        """Whether the model has what belongs to this state."""
        return frozen_name(state.vector, state.layout) in (b"", self._held.name)

    def come_to(self, state: State, now: float) -> Iterator[Action]:
        """The member has this state: it says so, once its model has the frozen parameters that belong to it."""
        self._state = state
        yield from self._go_on(now)

    def another_state(self) -> None:
        """The member is to come to another state. The pieces on their way are most likely of use for that."""
        self._state = None

    def leave(self) -> None:
        """The member is to come to no state any more."""
        self._state = self._fetch = None

    def _go_on(self, now: float) -> Iterator[Action]:
        if self._state is None or self._taking:
            return
        wanted = frozen_name(self._state.vector, self._state.layout)
        if self.fits(self._state):
            yield SayToCoordinator(StateAdopted(state=self._state.name))
            self.leave()
        elif self._fetch is None or self._fetch.state != wanted:
            self._fetch = PieceFetch(wanted, len(self._held))
            yield from tell_each(self._fetch.senders(self._senders, now))
        elif self._fetch.complete:
            # Not before: the others may fall back to the state that this member had, with its frozen parameters.
            self._taking = True
            yield TakeFrozen(self._fetch.data(), self._fetch.pieces)

    def wants(self, name: bytes) -> bool:
        """Whether pieces of this file are on their way."""
        return self._fetch is not None and self._fetch.state == name and not self._fetch.complete

    def hear_piece(
        self, sender: int, message: Piece | PieceList, payload: bytes | memoryview, now: float
    ) -> Iterator[Action]:
        """A piece, or the list of their hashes. Raises `PeerMisbehaved`."""
        assert self._fetch is not None
        yield from tell_each(self._fetch.hear(sender, message, payload, now))
        yield from self._go_on(now)

    def taken(self, now: float) -> Iterator[Action]:
        """The trainer has put them into the model."""
        self._taking, self._fetch = False, None
        yield from self._go_on(now)

    def deadline(self) -> float | None:
        """When to call `due`."""
        return self._fetch.deadline() if self._fetch else None

    def due(self, now: float) -> Iterator[Action]:
        """Time has passed."""
        if self._fetch:
            yield from tell_each(self._fetch.due(now))

    # --- for others ---

    @property
    def size(self) -> int:
        """Bytes of their file."""
        return len(self._held)

    def serve(self, to: int, ask: AskPieces) -> list[tuple[PieceList | Piece, bytes | memoryview]] | None:
        """The answer to a member that asks for pieces of them; None when the ask is for something else.

        Bytes that a task has changed meanwhile are not handed out. Raises `PeerMisbehaved`.
        """
        if not self.size or ask.state != self._held.name:
            return None
        pieces = self._held.pieces
        self._asked[to] += len(ask.numbers)
        if to != COORDINATOR and self._asked[to] > MOST_TIMES * piece_count(self.size):
            raise PeerMisbehaved("an ask for frozen parameters that it was sent before")
        answers = serve_pieces([self._held], ask)
        return [
            (answer, b"" if isinstance(answer, Piece) and not pieces.fits(answer.number, data) else data)
            for answer, data in answers
        ]
