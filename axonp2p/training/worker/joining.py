"""How a member comes to a state that it lacks: it fetches it in pieces, and follows the rounds that go on meanwhile.

Pure. The fetched state is one that a round began with, which its members hold for it until it follows no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.coding import BYTES_A_VALUE
from axonp2p.training.exchange.terms import terms_of
from axonp2p.training.messages import AdoptState, Piece, PieceList, SlicePart, StartRound
from axonp2p.training.state_transfer.piece_fetch import PieceFetch
from axonp2p.training.trainer.outer_optimizer import State, state_from_file, state_values
from axonp2p.training.trainer.trainer_orders import exchanges_of
from axonp2p.training.worker.followed_rounds import FollowedRounds
from axonp2p.training.worker.frozen_transfer import FrozenTransfer
from axonp2p.training.worker.member_actions import Action, NotTaken, tell_each
from axonp2p.training.worker.member_round import Lasting

MOST_KEPT = 4
"""States: as much may lie here of results that cannot be applied yet."""


class Joining:
    """A member on its way to the others' state; `held` are states that it has already."""

    def __init__(self, lasting: Lasting, held: Iterable[State], frozen: FrozenTransfer) -> None:
        self._lasting = lasting
        self._frozen = frozen
        self._bytes = state_values(lasting.layout) * BYTES_A_VALUE
        self._rounds = FollowedRounds(lasting.rank, lasting.layout, lasting.batch, MOST_KEPT * self._bytes)
        self._held = {state.name: state for state in held}
        self._fetch: PieceFetch | None = None

    @property
    def newest(self) -> State | None:
        """Where it stands."""
        return self._rounds.newest

    def named(self, state: bytes) -> State | None:
        """The state with which this member can take part in a round, if it has come to it."""
        return self._rounds.named(state)

    def adopt(self, order: AdoptState, now: float) -> Iterator[Action]:
        """Come to this state."""
        self._rounds.expect(order.state)
        yield from self._get_base(order.senders, now)
        yield from self._where(None, now)

    def follow(self, start: StartRound, now: float) -> Iterator[Action]:
        """Listen to a round. Raises `MalformedMessage` for one that makes no sense."""
        before = self._rounds.newest
        self._rounds.begin(start)
        yield from self._get_base(start.members, now)
        yield from self._where(before, now)
        for exchange in range(exchanges_of(start)):
            terms = terms_of(start, self._lasting.rank, exchange, self._lasting.layout, self._lasting.batch)
            for early in self._lasting.early.take(terms):
                yield from self.hear_slice(*early, now)

    def hear_slice(self, sender: int, part: SlicePart, payload: bytes | memoryview, now: float) -> Iterator[Action]:
        """A result."""
        before = self._rounds.newest
        try:
            self._rounds.hear(sender, part, payload, now)
        except PeerMisbehaved as error:
            yield NotTaken(sender, error)
        yield from self._where(before, now)

    def hear_piece(
        self, sender: int, message: Piece | PieceList, payload: bytes | memoryview, now: float
    ) -> Iterator[Action]:
        """A piece of the state, or the list of their hashes. Raises `PeerMisbehaved`."""
        if self._fetch is None:
            return
        yield from tell_each(self._fetch.hear(sender, message, payload, now))
        if self._fetch.complete:
            before = self._rounds.newest
            base, self._fetch = state_from_file(self._fetch.data(), self._lasting.layout), None
            self._rounds.arrived(base)
            yield from self._where(before, now)

    def deadline(self) -> float | None:
        """When to call `due`."""
        return self._fetch.deadline() if self._fetch else None

    def due(self, now: float) -> Iterator[Action]:
        """Time has passed."""
        if self._fetch:
            yield from tell_each(self._fetch.due(now))

    def _get_base(self, senders: Iterable[int], now: float) -> Iterator[Action]:
        """Fetch what is missing from these members, unless it is here."""
        base, others = self._rounds.base, [rank for rank in senders if rank != self._lasting.rank]
        yield from self._frozen.senders(others, now)
        if base is None:
            self._fetch = None
        elif base in self._held:
            self._rounds.arrived(self._held[base])
        else:
            if self._fetch is None or self._fetch.state != base:
                self._fetch = PieceFetch(base, self._bytes)
            yield from tell_each(self._fetch.senders(others, now))

    def _where(self, before: State | None, now: float) -> Iterator[Action]:
        """Say where this member stands when that has changed, once it has the frozen parameters too."""
        newest = self._rounds.newest
        if newest is not None and newest is not before:
            yield from self._frozen.come_to(newest, now)
