"""A task that is really trained in a simulated member: what its legs lead to is real, how long they take is not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec

from axonp2p.training.messages import Prepare, RedoSegment, StartRound
from axonp2p.training.trainer.local_trainer import Leg, LegVerdict, LocalTrainer
from axonp2p.training.trainer.own_trials import OwnTrials
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.trainer.trainer_orders import (
    Abandon,
    Accept,
    Done,
    Evaluate,
    Evaluated,
    LegDone,
    NextLeg,
    Redo,
    Redone,
    RollBack,
    TrainRound,
    Work,
    exchanges_of,
    key_of,
)
from axonp2p.training.worker.redo_server import RedoServer
from axonp2p.verification.claims import Mark, SegmentRedone
from tests.laboratory.exchange_peer import EVALUATING_S


class RealTrainer:
    """In the place of `FakeTrainer`. Legs are never cut short: all members must be as fast as each other."""

    def __init__(
        self, task_file: Path, prepare: Prepare, step_s: float, kind: type[LocalTrainer] = LocalTrainer
    ) -> None:
        self._trainer = kind(CheckedTask(task_file.parent, task_file.name), prepare)
        self._task_file, self._prepare = task_file, prepare
        self._trials = OwnTrials(prepare.rank)
        self.tries = True
        """Whether it takes steps of its own again in the first rounds, as workers do."""
        self._not_repeated = ""
        self._server: RedoServer | None = None
        self._cheats = kind is not LocalTrainer
        self._claims: dict[bytes, Mark] = {}
        """What a cheat said, by what it began with: of its own steps it says that again."""
        self._step_s = step_s
        self._start: StartRound | None = None
        self._exchange = 0
        self.first = self._trainer.first_state()
        self.averaged = self._trainer.averaged
        self.number = 0

    def give(self, work: Work, now: float) -> list[tuple[float, Done]]:
        """What it will say, and in how many seconds."""
        match work:
            case Abandon():
                self.number += 1
            case Accept():
                self._trainer.accept()
            case RollBack():
                self._trainer.put_back()
            case TrainRound(start):
                self._start, self._exchange = start, 0
                self._trainer.begin(start)
                return self._leg(work)
            case NextLeg():
                return self._leg(work)
            case Evaluate(key, weights, shards):
                metrics, samples = self._trainer.evaluate(weights, shards)
                return [(EVALUATING_S, Evaluated(key, metrics, samples, 0.0, self._not_repeated))]
            case Redo(order, start):
                return [(order.steps * self._step_s, Redone(self._redo(order, start)))]
            case _:
                raise AssertionError(f"nobody asks for {work} here")
        return []

    def over(self, leg: LegDone) -> None:
        """A leg has ended."""

    def close(self) -> None:
        """End the process that takes steps again."""
        if self._server:
            self._server.close()

    def _redo(self, order: RedoSegment, start: memoryview) -> SegmentRedone:
        self._server = self._server or RedoServer(1)
        redo = self._server.for_job(self._task_file.parent, self._prepare)
        message = redo(order, start, self._trainer, lambda: True)
        assert message
        if self._cheats and order.of == self._prepare.rank:
            return msgspec.structs.replace(message, end=self._claims[order.start.name])
        return message

    def _try_own(self, start: StartRound, leg: Leg) -> None:
        tried = self._trials.order(start, leg.places) if self.tries else None
        if tried:
            order, begin, claim = tried
            if why := self._trials.why_not(claim, self._redo(order, begin)):
                self._not_repeated = why

    def _leg(self, work: TrainRound | NextLeg) -> list[tuple[float, Done]]:
        assert self._start
        leg = self._trainer.leg(work.weights, lambda *_: LegVerdict.GO_ON, work.factors)
        assert leg
        seconds = leg.steps * self._step_s
        number, self._exchange = self._exchange, self._exchange + 1
        key = key_of(self._start)
        done = LegDone(
            key,
            number,
            leg.difference,
            leg.steps,
            leg.samples,
            leg.loss,
            leg.flops,
            seconds,
            0.0,
            leg.places,
            self._trainer.why_no_marks,
            moved=leg.moved,
        )
        if self._cheats:
            self._claims |= {one.mark.name: other.mark for one, other in pairwise(leg.places)}
        if self._exchange == exchanges_of(self._start):
            self._try_own(self._start, leg)
        return [(seconds, done)]
