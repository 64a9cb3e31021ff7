"""One simulated member: the real `WorkerMember` between its line and a trainer whose differences only depend on seeds.

It lives as the real worker does: it hears what comes one by one, says one more part of what it has to say whenever it
is free, and looks at its deadlines a moment after they are over. While it stands still nothing happens in it, its
training neither; what came meanwhile is heard first when it goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from axonp2p.tensors.layout import Layout
from axonp2p.training.messages import (
    AskFiles,
    BetweenMembers,
    FilePart,
    Piece,
    PieceList,
    Prepare,
    StartRound,
    ToWorkerTraining,
)
from axonp2p.training.trainer.outer_optimizer import State, first_state
from axonp2p.training.trainer.trainer_orders import (
    Abandon,
    Accept,
    Done,
    EndLegEarly,
    Evaluate,
    Evaluated,
    Key,
    LegDone,
    NextLeg,
    RollBack,
    Stepped,
    TrainRound,
    Work,
    exchanges_of,
    key_of,
)
from axonp2p.training.worker.member import WorkerMember
from axonp2p.training.worker.member_actions import Action, DropQueued, NotTaken, SayToCoordinator, SayToMember
from axonp2p.training.worker.outbox import WorkerOutbox
from axonp2p.training.worker.worker import LISTENING_S, _useless_after
from axonp2p.wire.codec import decode
from axonp2p.wire.frame import HEADER_LIMIT, split_frame
from tests.laboratory.exchange_lines import Agenda, Happening, Lines

A_PART_S = 0.001
"""What it takes to encode a part."""
EVALUATING_S = 0.3

Taken = dict[tuple[int, int, int, int], LegDone]
"""Every leg that was taken: rank, round, attempt, exchange."""


def first_of(layout: Layout, seed: int) -> State:
    """The task's own first weights."""
    weights = torch.randn(layout.values, generator=torch.Generator().manual_seed(seed))
    weights[layout.parameters + layout.float_buffers :].round_()
    return first_state(weights, layout)


def difference_of(layout: Layout, seed: int, rank: int, legs: int) -> Tensor:
    """What a member moves in the leg that comes after so many legs that count."""
    chance = torch.Generator().manual_seed(hash((seed, rank, legs)) % 2**62)
    return torch.randn(layout.values, generator=chance)


class FakeTrainer:
    """Takes legs in no time but its machine's. What it remembers is how many legs it has taken that count."""

    def __init__(self, layout: Layout, seed: int, rank: int, batch: int, step_s: float, taken: Taken) -> None:
        self._layout, self._seed, self._rank, self._batch = layout, seed, rank, batch
        self._step_s = step_s
        self._taken = taken
        self._legs = self._accepted = 0
        self._start: StartRound | None = None
        self._leg_of: tuple[Key, int] | None = None
        """Which leg is under way."""
        self._begun = 0.0
        self._exchange = self._steps = 0
        self.averaged: float | None = None
        """Its steps are not those of Adam."""
        self.number = 0
        """Of the last thing that was begun; what was to be said of any other is not wanted any more."""

    def give(self, work: Work, now: float) -> list[tuple[float, Done]]:
        """What it will say, and in how many seconds of its own, which `now` counts too."""
        match work:
            case Abandon():
                self.number += 1
                self._leg_of = None
            case Accept():
                self._accepted = self._legs
            case RollBack():
                self._legs = self._accepted
            case TrainRound(start):
                self._start, self._exchange, self._steps = start, 0, 0
                return self._leg(start, now)
            case NextLeg():
                assert self._start
                return self._leg(self._start, now)
            case EndLegEarly(key, exchange):
                return self._hurry(now) if self._leg_of == (key, exchange) else []
            case Evaluate(key):
                return [(EVALUATING_S, Evaluated(key, {"loss": 1.0}, 8, 0.0))]
        return []

    def _leg(self, start: StartRound, now: float) -> list[tuple[float, Done]]:
        steps = min(start.settings.exchange_every, start.steps - self._exchange * start.settings.exchange_every)
        if start.seconds:
            steps = max(1, min(steps, math.ceil(start.seconds / exchanges_of(start) / self._step_s)))
        self._leg_of, self._begun = (key_of(start), self._exchange), now
        said = self._says(key_of(start), self._exchange, steps)
        self._exchange += 1
        self._legs += 1
        return said

    def _says(self, key: Key, exchange: int, steps: int) -> list[tuple[float, Done]]:
        difference = difference_of(self._layout, self._seed, self._rank, self._legs)
        samples, seconds = steps * self._batch, steps * self._step_s
        done = LegDone(key, exchange, difference, steps, samples, 1.0, 100, seconds, 0.0)
        self._taken[self._rank, *key, exchange] = replace(done, difference=difference.clone())
        stepped = Stepped(key, self._steps + steps, 1.0, (self._steps + steps) * self._batch)
        return [(seconds, stepped), (seconds, done)]

    def over(self, leg: LegDone) -> None:
        """A leg has ended."""
        self._leg_of = None
        self._steps += leg.steps

    def _hurry(self, now: float) -> list[tuple[float, Done]]:
        assert self._leg_of
        key, exchange = self._leg_of
        before = self._taken[self._rank, *key, exchange]
        steps = min(before.steps, math.floor((now - self._begun) / self._step_s) + 1)
        self.number += 1
        self._legs -= 1
        said = self._says(key, exchange, steps)
        self._legs += 1
        return [(self._begun + seconds - now, done) for seconds, done in said]


class Trainer(Protocol):
    """What a member has its work done by; `FakeTrainer` says what is what."""

    number: int
    averaged: float | None

    def give(self, work: Work, now: float) -> list[tuple[float, Done]]: ...

    def over(self, leg: LegDone) -> None: ...


class Peer:
    """A member's machine. `world_sees(rank, work or None)` is told what it has its trainer do, and of each word."""

    def __init__(self, rank: int, agenda: Agenda, lines: Lines, trainer: Trainer, first: State, load_s: float) -> None:
        self.rank = rank
        self.alive = True
        self.frozen = False
        self.member: WorkerMember | None = None
        self.outbox = WorkerOutbox()
        self.refused: list[tuple[int, str]] = []
        """Of whom something was not taken, and why."""
        self.sees: Callable[[Work], None] = lambda work: None
        self.acted: Happening = lambda: None
        self._agenda, self._lines = agenda, lines
        self._trainer, self._first, self._load_s = trainer, first, load_s
        self._orders: list[bytes] = []
        self._loading = False
        self._meanwhile: list[Happening] = []
        self._still_s = 0.0
        self._stands_since = 0.0
        self._more_planned = False
        self._looks_at: float | None = None

    # --- standing still ---

    def freeze(self) -> None:
        if not self.frozen:
            self.frozen, self._stands_since = True, self._agenda.now

    def thaw(self) -> None:
        if self.frozen:
            self.frozen = False
            self._still_s += self._agenda.now - self._stands_since
            waiting, self._meanwhile = self._meanwhile, []
            for happens in waiting:
                self._lives(happens)

    def _lives(self, happens: Happening) -> None:
        if self.frozen:
            self._meanwhile.append(happens)
        elif self.alive:
            happens()
            self._go_on()

    def _takes(self, seconds: float, happens: Happening) -> None:
        """It happens after so many seconds in which the machine does not stand still."""
        still, due = self._still_s, self._agenda.now + seconds

        def come() -> None:
            nonlocal still, due
            if self._still_s > still:
                due, still = due + self._still_s - still, self._still_s
                self._agenda.at(due, lambda: self._lives(come))
            else:
                happens()

        self._agenda.at(due, lambda: self._lives(come))

    # --- what it hears ---

    def hear_order(self, frame: bytes) -> None:
        """From the coordinator."""
        self._lives(lambda: self._hear_order(frame))

    def hear_member(self, sender: int, frame: bytes, taken: Happening) -> None:
        """From another member."""
        self._lives(lambda: self._hear_member(sender, frame, taken))

    def _hear_order(self, frame: bytes) -> None:
        parts = split_frame(frame)
        order: ToWorkerTraining = decode(parts.header, ToWorkerTraining, HEADER_LIMIT)
        if isinstance(order, Prepare):
            if self.member:
                self._carry_out(self.member.prepare_again())
            elif not self._loading:
                self._loading = True
                self._takes(self._load_s, lambda: self._loaded(order))
            else:
                self._orders.clear()
        elif self.member is None:
            self._orders.append(frame)
        elif isinstance(order, FilePart):
            self._carry_out(self.member.hear_file(order, parts.payload, self._agenda.now))
        elif not isinstance(order, AskFiles | Piece | PieceList):
            self._carry_out(self.member.ordered(order, self._agenda.now))

    def _loaded(self, order: Prepare) -> None:
        self.member = WorkerMember(order, self._first, b"", self._trainer.averaged)
        self._carry_out([self.member.prepared()])
        for frame in self._orders:
            self._hear_order(frame)

    def _hear_member(self, sender: int, frame: bytes, taken: Happening) -> None:
        if self.member:
            parts = split_frame(frame)
            message: BetweenMembers = decode(parts.header, BetweenMembers, HEADER_LIMIT)
            self._carry_out(self.member.heard(sender, message, parts.payload, self._agenda.now))
        taken()

    # --- what it does ---

    def _go_on(self) -> None:
        self._lines.pump(self.rank)
        member = self.member
        if member is None:
            return
        self.acted()
        if member.talkative and not self._more_planned:
            self._more_planned = True
            self._takes(A_PART_S, self._more)
        deadline = member.deadline()
        if deadline is not None and (self._looks_at is None or deadline + LISTENING_S < self._looks_at):
            self._look_at(max(deadline, self._agenda.now) + LISTENING_S)

    def _more(self) -> None:
        self._more_planned = False
        if self.member and self.member.talkative:
            self._carry_out(self.member.more(self._agenda.now))

    def _look_at(self, when: float) -> None:
        self._looks_at = when

        def look() -> None:
            if self._looks_at == when:
                self._looks_at = None
                self._look()

        self._agenda.at(when, lambda: self._lives(look))

    def _look(self) -> None:
        member, now = self.member, self._agenda.now
        assert member
        deadline = member.deadline()
        if deadline is None or deadline > now:
            return
        self._carry_out(member.due(now))
        again = member.deadline()
        assert again is None or again > now, f"member {self.rank} leaves its deadline of {again} undecided at {now}"

    def _carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case SayToCoordinator(message, payload):
                    self.outbox.report(message, bytes(payload))
                case SayToMember(rank, message, payload):
                    self.outbox.tell(rank, message, bytes(payload))
                case DropQueued(start):
                    self.outbox.drop(_useless_after(start))
                case NotTaken(sender, error):
                    self.refused.append((sender, error.message))
                case work:
                    self._train(work)

    def _train(self, work: Work) -> None:
        self.sees(work)
        for seconds, done in self._trainer.give(work, self._agenda.now - self._still_s):

            def say(done: Done = done, number: int = self._trainer.number) -> None:
                if self.member and number == self._trainer.number:
                    if isinstance(done, LegDone):
                        self._trainer.over(done)
                    self._carry_out(self.member.trained(done, self._agenda.now))

            self._takes(seconds, say)
