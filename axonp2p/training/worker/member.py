"""A worker's membership in one job, from its model on: orders, and what members and the trainer say. Pure.

No thread, socket or clock: everything comes in as values with the time, and what is to be done goes out, in order and
one by one, so that the trainer need not wait for what comes after its own. Carry each action out before you ask for
the next; after a call every action must have been asked for.

A member holds two states: the accepted one, and the candidate that the last finished round led to. The next order
names one of them. The candidate: the round counts. The accepted one: the round is redone, with the leftover and the
inner optimiser as they were. States that were lent to others are held until those need them no more.

A listener trains nothing: it fetches a state in pieces, follows the rounds meanwhile, and says after each where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from axonp2p.errors import MalformedMessage, PeerMisbehaved
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.error_feedback import ErrorFeedback
from axonp2p.training.exchange.reorder_buffer import ReorderBuffer
from axonp2p.training.exchange.terms import ExchangeKey, terms_of
from axonp2p.training.messages import (
    AdoptState,
    AskPieces,
    BetweenMembers,
    FilePart,
    Prepare,
    Prepared,
    Progress,
    RedoSegment,
    SlicePart,
    StartRound,
)
from axonp2p.training.state_transfer.pieces import serve_pieces
from axonp2p.training.trainer.local_trainer import redone
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.step_scale import StepScale
from axonp2p.training.trainer.trainer_orders import (
    Abandon,
    Accept,
    Done,
    Evaluated,
    FrozenTaken,
    Key,
    LegDone,
    Redo,
    Redone,
    RollBack,
    TaskWentWrong,
    key_of,
)
from axonp2p.training.worker.frozen_transfer import FrozenTransfer
from axonp2p.training.worker.held_states import HeldStates, KeptPlaces
from axonp2p.training.worker.joining import Joining
from axonp2p.training.worker.member_actions import (
    COORDINATOR,
    Action,
    DropQueued,
    NotTaken,
    SayToCoordinator,
    SayToMember,
)
from axonp2p.training.worker.member_round import Lasting, MemberRound
from axonp2p.training.worker.recomputing import Recomputing
from axonp2p.training.worker.state_file import StateFile
from axonp2p.verification.claims import RoundDone

Order = AdoptState | StartRound | AskPieces | RedoSegment


class WorkerMember:
    """A worker's part in a job. `first` is the state of the task's own first weights, `file_layout` is for the client.

    `averaged` is over how many gradients the inner optimiser's momentum averages, None when its steps need no scale;
    `frozen` are the frozen parameters of the trainer's model, None where it has none; `device` is where that is.
    Orders that make no sense raise `MalformedMessage`; what members may not say comes back as `NotTaken`.
    """

    def __init__(
        self,
        prepare: Prepare,
        first: State,
        file_layout: bytes,
        averaged: float | None = None,
        frozen: FrozenTensors | None = None,
        device: str = "cpu",
    ) -> None:
        layout = first.layout
        self._device = device
        self._file_layout = file_layout
        early, arrivals = ReorderBuffer(layout.values), ArrivalTimes()
        self._lasting = Lasting(prepare.rank, layout, prepare.batch, early, arrivals)
        leftover = ErrorFeedback(layout.values, layout.parameters)
        scale = StepScale(averaged) if averaged is not None and prepare.step_scaling else None
        self._states = HeldStates(first, leftover, scale)
        self._round: MemberRound | None = None
        """The round that goes on, or is being evaluated."""
        self._start: StartRound | None = None
        """Of the round that goes on, until its last exchange is over."""
        self._evaluating: Key | None = None
        """The round whose new weights are being evaluated."""
        self._trained = False
        """Whether the trainer has begun a round since its optimiser was accepted or put back."""
        self._wanted: ExchangeKey = (0, 0, 0)
        """Parts from this exchange on belong to rounds that have not begun here."""
        self._joining: Joining | None = None
        self._state_file = StateFile(layout)
        self._frozen = FrozenTransfer(frozen or FrozenTensors({}))
        self._sent: State | None = None
        """The state that the coordinator sent, while its frozen parameters are missing."""
        self._places = KeptPlaces()
        self._recomputing = Recomputing()
        self._helped_flops = self._told_flops = 0
        """Spent on steps of others since the last report, and of those before it: they are this member's work too."""

    def prepared(self) -> SayToCoordinator:
        """The message to the coordinator about the model."""
        layout, candidate = self._lasting.layout, self._states.candidate
        told = Prepared(
            state=self._states.accepted.name,
            parameters=layout.parameters,
            values=layout.values,
            exact=layout.moving,
            candidate=candidate.name if candidate else None,
            frozen=self._frozen.size,
            device=self._device,
        )
        return SayToCoordinator(told, self._file_layout)

    def prepare_again(self) -> Iterator[Action]:
        """Another coordinator goes on: whatever the last one ordered is over."""
        yield from self._leave_round()
        self._joining = self._sent = None
        self._frozen.leave()
        yield self.prepared()

    # --- what the coordinator says ---

    def ordered(self, order: Order, now: float) -> Iterator[Action]:
        """An order. It ends whatever is being done, unless it asks for pieces of a state or for help."""
        if isinstance(order, AskPieces):
            yield from self._hand_over(order)
        elif isinstance(order, RedoSegment) and order.of == self._lasting.rank:
            place = self._places.named(order.start.name)
            yield Redo(order, place.file) if place else SayToCoordinator(redone(order, failed="not handed over"))
        elif isinstance(order, RedoSegment):
            yield from self._recomputing.ordered(order, now)
        elif isinstance(order, StartRound):
            yield from self._start_round(order, now)
        else:
            yield from self._adopt(order, now)

    def hear_file(self, part: FilePart, payload: bytes | memoryview, now: float) -> Iterator[Action]:
        """The next part of a state's file, which comes before the order to adopt it or after."""
        self._state_file.hear(part, payload)
        yield from self._take_file(now)

    # --- what members say ---

    def heard(self, sender: int, message: BetweenMembers, payload: bytes | memoryview, now: float) -> Iterator[Action]:
        """A message from another member, or pieces from the coordinator."""
        try:
            if isinstance(message, SlicePart):
                yield from self._hear_slice(sender, message, payload, now)
            elif isinstance(message, AskPieces):
                yield from self._lend(sender, message)
            elif self._frozen.wants(message.state):
                yield from self._frozen.hear_piece(sender, message, payload, now)
            elif self._recomputing.wants(message.state):
                yield from self._recomputing.hear_piece(sender, message, payload, now)
            elif self._joining:
                yield from self._joining.hear_piece(sender, message, payload, now)
        except PeerMisbehaved as error:
            yield NotTaken(sender, error)

    # --- what the trainer says ---

    def trained(self, done: Done, now: float) -> Iterator[Action]:
        """The trainer has done something; what belongs to a round that is over for this member is passed over."""
        if isinstance(done, TaskWentWrong):
            yield from self._leave_round()
            yield SayToCoordinator(done.report)
        elif isinstance(done, Evaluated):
            if self._round and done.key == self._evaluating:
                self._evaluating = None
                yield SayToCoordinator(self._report(self._round, done))
        elif isinstance(done, Redone):
            self._helped_flops += done.message.flops
            yield SayToCoordinator(done.message)
        elif isinstance(done, FrozenTaken):
            yield from self._frozen.taken(now)
        elif self._round and self._start and done.key == key_of(self._start):
            if isinstance(done, LegDone):
                yield from self._round.leg_done(done, now)
                self._end_round()
            else:
                round, attempt = done.key
                yield SayToCoordinator(
                    Progress(round=round, attempt=attempt, step=done.step, loss=done.loss, samples=done.samples)
                )

    # --- time ---

    def deadline(self) -> float | None:
        """When to call `due`, if nothing is heard before."""
        times = [one.deadline() for one in (self._round, self._joining, self._recomputing, self._frozen) if one]
        return min((time for time in times if time is not None), default=None)

    def due(self, now: float) -> Iterator[Action]:
        """Time has passed. First give this member all that has come."""
        if self._start and self._round:
            yield from self._round.due(now)
            self._end_round()
        if self._joining:
            yield from self._joining.due(now)
        yield from self._recomputing.due(now)
        yield from self._frozen.due(now)

    @property
    def talkative(self) -> bool:
        """True when `more` has something to say."""
        return bool(self._start and self._round and self._round.talkative)

    def more(self, now: float) -> Iterator[Action]:
        """One more part of what this member has to say by itself: to be called when nothing else is to be done."""
        if self._start and self._round:
            yield from self._round.more(now)
            self._end_round()

    # --- rounds ---

    def _start_round(self, start: StartRound, now: float) -> Iterator[Action]:
        lasting = self._lasting
        terms_of(start, lasting.rank, 0, lasting.layout, lasting.batch)  # finds what makes no sense
        yield from self._leave_round()
        yield DropQueued(start)
        self._wanted = (start.round, start.attempt + 1, 0)
        if lasting.rank in start.listeners:
            self._joining = self._joining or Joining(lasting, self._all_states(), self._frozen)
            yield from self._joining.follow(start, now)
            return
        if not start.shards:
            raise MalformedMessage("a round for a member without shards")
        yield from self._go_on_from(start.state)
        if not self._frozen.fits(self._states.accepted):
            raise MalformedMessage("a round from a state to which other frozen parameters belong")
        self._states.lend_to_listeners(start.listeners)
        self._start, self._trained = start, True
        states = self._states
        self._round = MemberRound(start, lasting, states.accepted, states.leftover.copy(), states.scale)
        yield from self._round.begin()

    def _end_round(self) -> None:
        if self._start and self._round and self._round.over:
            self._evaluating, self._start = key_of(self._start), None
            self._states.offer(self._round.state, self._round.leftover, self._round.scale)
            self._round.name()

    def _report(self, round: MemberRound, done: Evaluated) -> RoundDone:
        report = round.report(done)
        self._places.keep(done.key, round.places)
        self._told_flops, self._helped_flops = self._helped_flops, 0
        return msgspec.structs.replace(report, flops=report.flops + self._told_flops)

    def _leave_round(self) -> Iterator[Action]:
        """The work in hand is wanted no more; the candidate stays."""
        if self._start or self._evaluating:
            yield Abandon()
        self._round = self._start = self._evaluating = None

    def _go_on_from(self, state: bytes) -> Iterator[Action]:
        joined = self._joining.named(state) if self._joining else self._sent
        self._joining = self._sent = None
        self._frozen.leave()
        if joined and joined.name == state and not self._states.has(state):
            self._states.adopt(joined)
        counts = self._states.settle(state)
        if self._trained:
            self._trained = False
            yield Accept() if counts else RollBack()
            if not counts:
                self._helped_flops += self._told_flops
            self._told_flops = 0

    def _hear_slice(self, sender: int, part: SlicePart, payload: bytes | memoryview, now: float) -> Iterator[Action]:
        key = part.round, part.attempt, part.exchange
        if key >= self._wanted:
            self._lasting.early.keep(sender, part, payload)
        elif self._joining:
            yield from self._joining.hear_slice(sender, part, payload, now)
        elif self._start and self._round and key >= self._round.key:
            if key == self._round.key and self._round.exchanging:
                yield from self._round.hear(sender, part, payload, now)
                self._end_round()
            else:
                self._lasting.early.keep(sender, part, payload)
                yield from self._round.overtaken(sender, part.exchange)

    # --- states ---

    def _all_states(self) -> list[State]:
        return [*self._states.all(), *([self._sent] if self._sent else [])]

    def _lend(self, to: int, ask: AskPieces) -> Iterator[Action]:
        answers = self._places.serve(ask)
        if answers is None:
            answers = self._frozen.serve(to, ask)
        if answers is not None:
            for answer, payload in answers:
                yield SayToMember(to, answer, payload)
            return
        joined = self._joining.newest if self._joining else self._sent
        for answer, payload in self._states.lend(to, ask, [joined] if joined else []):
            yield SayToMember(to, answer, payload)

    def _hand_over(self, ask: AskPieces) -> Iterator[Action]:
        """Pieces for the client's disk."""
        try:
            answers = self._frozen.serve(COORDINATOR, ask) or serve_pieces(self._all_states(), ask)
        except PeerMisbehaved as error:
            raise MalformedMessage(error.message) from error
        for answer, payload in answers:
            yield SayToCoordinator(answer, payload)

    def _adopt(self, order: AdoptState, now: float) -> Iterator[Action]:
        yield from self._leave_round()
        self._frozen.another_state()
        if self._states.has(order.state):
            yield from self._go_on_from(order.state)
            yield from self._frozen.senders(order.senders, now)
            yield from self._frozen.come_to(self._states.accepted, now)
        elif order.senders:
            self._joining = self._joining or Joining(self._lasting, self._all_states(), self._frozen)
            yield from self._joining.adopt(order, now)
        else:
            self._state_file.want(order.state)
            yield from self._take_file(now)

    def _take_file(self, now: float) -> Iterator[Action]:
        state = self._state_file.take()
        if state:
            self._joining, self._sent = None, state
            yield from self._frozen.senders([COORDINATOR], now)
            yield from self._frozen.come_to(state, now)
