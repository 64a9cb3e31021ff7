"""A round as one of its members goes through it: legs of local steps, and the exchanges between them. Pure.

Without overlap the trainer waits for each exchange:

    leg 0 | exchange 0 | outer step | leg 1 | exchange 1 | outer step

With overlap a leg begins while the exchange before it is under way (Streaming DiLoCo, Douillard et al., arXiv
2501.18512, for whole vectors): from the global weights as far as they are known, less this member's own difference,
which the exchange will bring as part of a mean. There is never more than one exchange under way.

    leg 0 | leg 1      | leg 2
            exchange 0 | outer step, exchange 1 | outer step, exchange 2 | outer step

Either way all members have the same weights after the last exchange, to the bit.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import Tensor

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.flat import minus
from axonp2p.tensors.layout import Layout
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.error_feedback import ErrorFeedback
from axonp2p.training.exchange.reorder_buffer import ReorderBuffer
from axonp2p.training.exchange.slice_exchange import Outgoing, SliceExchange
from axonp2p.training.exchange.terms import ExchangeKey, terms_of
from axonp2p.training.messages import SlicePart, StartRound
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.training.trainer.outer_optimizer import OuterStep, State
from axonp2p.training.trainer.step_scale import StepScale
from axonp2p.training.trainer.trainer_orders import (
    EndLegEarly,
    Evaluate,
    Evaluated,
    LegDone,
    NextLeg,
    TrainRound,
    exchanges_of,
    key_of,
)
from axonp2p.training.worker.member_actions import Action, NotTaken, SayToMember
from axonp2p.verification.claims import Mark, RoundDone


@dataclass(frozen=True)
class Lasting:
    """The memory of a member from one round to the next, whatever becomes of them."""

    rank: int
    layout: Layout
    batch: int
    early: ReorderBuffer
    arrivals: ArrivalTimes


@dataclass
class _Sums:
    """The results of the legs and exchanges of a round until now."""

    legs: int = 0
    steps: int = 0
    samples: int = 0
    losses: float = 0.0
    """Over the steps."""
    flops: int = 0
    train_seconds: float = 0.0
    waited_seconds: float = 0.0
    left_out: set[int] = field(default_factory=set)
    kept_back: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    digests: dict[int, bytes] = field(default_factory=dict)
    """By owner, of each exchange, one after the other."""
    marks: list[Mark] = field(default_factory=list)
    no_marks: str = ""
    mark_seconds: float = 0.0
    unmoved: int = 0

    def add_leg(self, leg: LegDone) -> None:
        self.legs += 1
        self.steps += leg.steps
        self.samples += leg.samples
        self.losses += leg.loss * leg.steps
        self.flops += leg.flops
        self.train_seconds += leg.seconds
        self.waited_seconds += leg.waited
        self.mark_seconds += leg.mark_seconds
        self.unmoved += not leg.moved

    def add_exchange(self, exchange: SliceExchange) -> None:
        self.left_out |= exchange.left_out
        self.kept_back += exchange.kept_back
        self.sent_bytes += exchange.sent_bytes
        self.received_bytes += exchange.received_bytes
        for owner, digest in exchange.digests.items():
            self.digests[owner] = self.digests.get(owner, b"") + digest


class MemberRound:
    """One attempt at a round from `state`. `leftover` is taken over; carry actions out as they come.

    `scale` lengthens the steps that an adaptive optimiser takes; None leaves them as they are.
    """

    def __init__(
        self, start: StartRound, lasting: Lasting, state: State, leftover: ErrorFeedback, scale: StepScale | None
    ) -> None:
        self._start = start
        self._lasting = lasting
        self.state = state
        """Where the exchanges led to that are applied."""
        self.leftover = leftover
        self.scale = scale
        self._factors = scale.factors(len(start.members)) if scale else None
        self._difference: Tensor | None = None
        self._applied = 0
        self._waiting: LegDone | None = None
        self._exchange: SliceExchange | None = None
        self._outer: OuterStep | None = None
        """That the exchange which is under way comes to."""
        self._outgoing: Iterator[Outgoing] | None = None
        self._sums = _Sums()
        self.places: list[MarkBytes] = []
        """Of what is committed to: where somebody else could begin."""
        self._ahead: dict[int, int] = {}
        """The latest exchange from which each member has sent something too early."""
        self._unnamed: deque[MarkBytes] = deque()
        """Committed to, but not hashed yet: many megabytes each, for which no part of an exchange shall wait."""
        self._hurried = -1
        """The last leg that was cut short."""

    @property
    def over(self) -> bool:
        """True when all exchanges are applied."""
        return self._applied == exchanges_of(self._start)

    @property
    def key(self) -> ExchangeKey:
        """The exchange that is under way, or comes next."""
        return (*key_of(self._start), self._applied)

    @property
    def exchanging(self) -> bool:
        """True while an exchange is under way."""
        return self._exchange is not None

    @property
    def talkative(self) -> bool:
        """True when `more` has something to say."""
        return self._outgoing is not None or bool(self._unnamed)

    def begin(self) -> Iterator[Action]:
        """The first leg."""
        yield TrainRound(self._start, self.state.weights, self._factors)

    def leg_done(self, leg: LegDone, now: float) -> Iterator[Action]:
        """The trainer has taken a leg; its exchange begins as soon as the one before it is over."""
        self._waiting = leg
        yield from self._go_on(now)
        self._sums.no_marks = leg.no_marks
        self._unnamed += leg.places
        self.places += leg.places[:-1]

    def hear(self, sender: int, part: SlicePart, payload: bytes | memoryview, now: float) -> Iterator[Action]:
        """A part of the exchange that is under way."""
        assert self._exchange is not None
        yield from self._receive(self._exchange, sender, part, payload, now)
        yield from self._go_on(now)

    def overtaken(self, sender: int, exchange: int) -> Iterator[Action]:
        """A member sent a part of a later exchange than this one's leg leads to: it was not waited for.

        Once most owners are there, the leg ends after its step: what it has done goes out with the next exchange, and
        this member does not fall behind further. One sender alone cannot cut everyone's work short.
        """
        leg = self._sums.legs + (self._waiting is not None)
        if exchange > leg:
            self._ahead[sender] = exchange
        owners = {member for member, share in zip(self._start.members, self._start.shares, strict=True) if share}
        owners.discard(self._lasting.rank)
        ahead = {owner for owner in owners if self._ahead.get(owner, 0) > leg}
        if 2 * len(ahead) > len(owners) and self._hurried < leg:
            self._hurried = leg
            yield EndLegEarly(key_of(self._start), leg)

    def more(self, now: float) -> Iterator[Action]:
        """One more part of what this member has to say by itself, or else one more hash for its report."""
        if self._outgoing is None:
            self._name_one()
            return
        outgoing = next(self._outgoing, None)
        if outgoing is None:
            self._outgoing = None
        else:
            yield SayToMember(*outgoing)
        yield from self._go_on(now)

    def due(self, now: float) -> Iterator[Action]:
        """Time has passed."""
        if self._exchange is not None:
            yield from (SayToMember(*outgoing) for outgoing in self._exchange.due(now))
        yield from self._go_on(now)

    def deadline(self) -> float | None:
        """When `due` has something to decide."""
        return self._exchange.deadline() if self._exchange else None

    def name(self) -> None:
        """Hash what the report will name, once the round is `over`: while the trainer evaluates."""
        _ = self.state.name
        while self._unnamed:
            self._name_one()

    def report(self, evaluated: Evaluated) -> RoundDone:
        """The report to the coordinator about the round, once it was given its names."""
        sums = self._sums
        return RoundDone(
            round=self._start.round,
            attempt=self._start.attempt,
            state=self.state.name,
            loss=sums.losses / sums.steps,
            samples=sums.samples,
            flops=sums.flops,
            train_seconds=sums.train_seconds,
            exchange_seconds=sums.waited_seconds + evaluated.waited,
            exchanges=sums.legs,
            left_out=sorted(sums.left_out),
            kept_back=sums.kept_back,
            slices=[hashlib.sha256(sums.digests[member]).digest() for member in self._start.members],
            sent_bytes=sums.sent_bytes,
            received_bytes=sums.received_bytes,
            metrics=evaluated.metrics,
            test_samples=evaluated.samples,
            marks=[] if sums.no_marks else sums.marks,
            no_marks=sums.no_marks,
            mark_seconds=sums.mark_seconds,
            unmoved=sums.unmoved,
            not_repeated=evaluated.not_repeated,
        )

    def _name_one(self) -> None:
        if self._unnamed:
            self._sums.marks.append(self._unnamed.popleft().mark)

    def _go_on(self, now: float) -> Iterator[Action]:
        """All that can be done now: apply an exchange that is complete, begin the next one."""
        while self._exchange is None or self._exchange.complete:
            if self._exchange is not None:
                yield from self._apply(self._exchange)
            if self._waiting is None:
                return
            yield from self._meet(self._waiting, now)

    def _apply(self, exchange: SliceExchange) -> Iterator[Action]:
        start = self._start
        assert self._outer is not None
        self.state = self._outer.state()
        self._exchange = self._outer = self._outgoing = None
        self._applied += 1
        # First of all the trainer, so that it does not stand waiting.
        if self.over:
            yield Evaluate(key_of(start), self.state.weights, start.shards)
        elif not start.settings.overlap:
            yield NextLeg(self.state.weights, self._factors)
        self.leftover.settle(exchange.leftover(), exchange.past())
        if self.scale and self._difference is not None:
            self.scale = self.scale.after(self._difference, exchange.mean())
            self._factors = self.scale.factors(len(start.members))
        self._sums.add_exchange(exchange)

    def _meet(self, leg: LegDone, now: float) -> Iterator[Action]:
        """Begin the exchange of a leg, with what others have sent of it already."""
        start, lasting = self._start, self._lasting
        self._waiting = None
        self._sums.add_leg(leg)
        if start.settings.overlap and self._applied + 1 < exchanges_of(start):
            yield NextLeg(minus(self.state.weights, leg.difference, lasting.layout), self._factors)
        terms = terms_of(start, lasting.rank, self._applied, lasting.layout, lasting.batch)
        self._difference = leg.difference.clone() if self.scale else None
        sending = self.leftover.take(leg.difference)
        past = self.leftover.past
        outer = self._outer = OuterStep(self.state, start.settings.outer_learning_rate, start.settings.outer_momentum)
        exchange = SliceExchange(terms, sending, leg.samples, lasting.arrivals, now, past, outer.take)
        self._exchange = exchange
        self._outgoing = exchange.outgoing()
        for early in lasting.early.take(terms):
            yield from self._receive(exchange, *early, now)

    def _receive(
        self, exchange: SliceExchange, sender: int, part: SlicePart, payload: bytes | memoryview, now: float
    ) -> Iterator[Action]:
        try:
            answers = exchange.receive(sender, part, payload, now)
        except PeerMisbehaved as error:
            yield NotTaken(sender, error)
        else:
            yield from (SayToMember(*outgoing) for outgoing in answers)
