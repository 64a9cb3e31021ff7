"""The parts that a late joiner keeps of the rounds that go on while it fetches the state that they began with.

It listens: members send it every result. Of an exchange that is complete the results are kept as they came, since they
are many times smaller than the mean that they make, until the state is there; then the outer steps are taken in order
and the joiner stands where the others stand. From then on each exchange is applied as soon as it is complete.

The memory kept is bounded. Above that, or when a round begins from a state that those followed do not lead to, all is
let go, and the joiner begins anew: from the state that the next round begins from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.coding import BYTES_A_VALUE
from axonp2p.tensors.layout import Layout
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.slice_exchange import SliceExchange
from axonp2p.training.exchange.terms import Terms, terms_of
from axonp2p.training.messages import SlicePart, StartRound
from axonp2p.training.trainer.outer_optimizer import State, outer_step
from axonp2p.training.trainer.trainer_orders import Key, exchanges_of, key_of


class _Result(NamedTuple):
    sender: int
    part: SlicePart
    payload: bytes


@dataclass
class _Exchange:
    """One exchange: on its way in, or complete and folded up."""

    terms: Terms
    incoming: SliceExchange | None
    results: list[_Result] = field(default_factory=list)
    result_bytes: int = 0

    @property
    def complete(self) -> bool:
        return self.incoming is None or self.incoming.complete

    @property
    def bytes(self) -> int:
        vector = self.terms.values * BYTES_A_VALUE if self.incoming else 0
        return vector + self.result_bytes


@dataclass
class _Round:
    """One attempt at a round; `state` is where the exchanges that are applied led to."""

    start: StartRound
    exchanges: dict[int, _Exchange] = field(default_factory=dict)
    applied: int = 0
    state: State | None = None

    @property
    def key(self) -> Key:
        return key_of(self.start)

    @property
    def over(self) -> bool:
        return self.applied == exchanges_of(self.start)


class FollowedRounds:
    """The rounds that a listener follows. Times are seconds on any clock."""

    def __init__(self, rank: int, layout: Layout, batch: int, most_bytes: int) -> None:
        """`most_bytes` may be kept of results; a few times the state is plenty."""
        self._rank = rank
        self._layout = layout
        self._batch = batch
        self._most_bytes = most_bytes
        self._arrivals = ArrivalTimes()
        self._base: bytes | None = None
        self._accepted: State | None = None
        self._rounds: list[_Round] = []

    @property
    def base(self) -> bytes | None:
        """The name of the state that must be fetched; None until the next round begins, or once it is there."""
        return self._base

    @property
    def newest(self) -> State | None:
        """Where the rounds led to that were followed to their end; None while the base is missing."""
        first = self._rounds[0] if self._rounds else None
        return first.state if first and first.over else self._accepted

    def named(self, state: bytes) -> State | None:
        """The newest state or the one before it, if that is its name: a round with this member begins from it."""
        return next((one for one in (self.newest, self._accepted) if one and one.name == state), None)

    def expect(self, state: bytes) -> None:
        """This state is to be fetched, whatever was followed until now. One here, or on its way, is left alone."""
        if state == self._base or self.named(state):
            return
        starts = [one.start.state for one in self._rounds]
        # Only the first of the rounds may be applied in part; it begins from what is here or on its way.
        self._rounds = self._rounds[starts.index(state) :] if state in starts else []
        self._base, self._accepted = state, None

    def begin(self, start: StartRound) -> None:
        """A round begins, or is redone. Raises `MalformedMessage` for an order that makes no sense."""
        terms_of(start, self._rank, 0, self._layout, self._batch)
        begun = _Round(start)
        self._rounds = [one for one in self._rounds if one.start.round < start.round]
        before = self._rounds[-1].start.round + 1 if self._rounds else None
        here = self._accepted.name if self._accepted else self._base
        if before == start.round or (before is None and here == start.state):
            self._rounds.append(begun)
            self._advance()
        else:
            self._begin_anew(begun)

    def arrived(self, base: State) -> None:
        """The base is there; one that is not wanted (any more) is not taken."""
        if base.name != self._base:
            return
        self._base, self._accepted = None, base
        self._advance()

    def hear(self, sender: int, part: SlicePart, payload: bytes | memoryview, now: float) -> None:
        """A result came. One of a round that is not followed is passed over. Raises `PeerMisbehaved`."""
        followed = next((one for one in self._rounds if one.key == (part.round, part.attempt)), None)
        if followed is None or part.exchange < followed.applied:
            return
        if part.exchange >= exchanges_of(followed.start):
            raise PeerMisbehaved(f"rank {sender} sent a part of an exchange that the round does not have")
        exchange = followed.exchanges.get(part.exchange) or self._exchange(followed.start, part.exchange, now)
        if exchange.incoming is None:
            raise PeerMisbehaved(f"rank {sender} sent a result of an exchange that is complete")
        exchange.incoming.receive(sender, part, payload, now)
        followed.exchanges[part.exchange] = exchange
        exchange.results.append(_Result(sender, part, bytes(payload)))
        exchange.result_bytes += len(payload)
        self._advance()
        if exchange.complete:
            exchange.incoming = None
        if sum(one.bytes for followed in self._rounds for one in followed.exchanges.values()) > self._most_bytes:
            self._begin_anew(None)

    def _exchange(self, start: StartRound, number: int, now: float) -> _Exchange:
        terms = terms_of(start, self._rank, number, self._layout, self._batch)
        return _Exchange(terms, SliceExchange(terms, None, 0, self._arrivals, now))

    def _advance(self) -> None:
        """Apply what is complete and next in order."""
        while self._accepted and self._rounds:
            first = self._rounds[0]
            self._apply(first, self._accepted)
            if not first.over or len(self._rounds) == 1:
                return
            assert first.state is not None
            if first.state.name != self._rounds[1].start.state:
                self._begin_anew(self._rounds[-1])
                return
            self._accepted = first.state
            del self._rounds[0]

    def _apply(self, followed: _Round, begins: State) -> None:
        start = followed.start
        while (exchange := followed.exchanges.get(followed.applied)) and exchange.complete:
            state = followed.state or begins
            mean = _mean(exchange, self._arrivals)
            followed.state = outer_step(state, mean, start.settings.outer_learning_rate, start.settings.outer_momentum)
            del followed.exchanges[followed.applied]
            followed.applied += 1

    def _begin_anew(self, newest: _Round | None) -> None:
        self._accepted = None
        self._rounds = [newest] if newest else []
        self._base = newest.start.state if newest else None


def _mean(exchange: _Exchange, arrivals: ArrivalTimes) -> Tensor:
    incoming = exchange.incoming
    if incoming is None:
        incoming = SliceExchange(exchange.terms, None, 0, arrivals, 0.0)
        for sender, part, payload in exchange.results:
            incoming.receive(sender, part, payload, 0.0)
    return incoming.mean()
