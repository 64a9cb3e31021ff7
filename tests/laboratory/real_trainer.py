"""A task that is really trained in a simulated member: what its legs lead to is real, how long they take is not."""

from __future__ import annotations

from pathlib import Path

from axonp2p.training.legs import (
    Abandon,
    Accept,
    Done,
    Evaluate,
    Evaluated,
    GoOn,
    LegDone,
    PutBack,
    Redo,
    Redone,
    TrainRound,
    Work,
    key_of,
)
from axonp2p.training.local_trainer import LocalTrainer, Verdict
from axonp2p.training.messages import Prepare, StartRound
from axonp2p.training.task import Task
from tests.laboratory.exchange_peer import EVALUATING_S


class RealTrainer:
    """In the place of `FakeTrainer`. Legs are never cut short: all members must be as fast as each other."""

    def __init__(
        self, task_file: Path, prepare: Prepare, step_s: float, kind: type[LocalTrainer] = LocalTrainer
    ) -> None:
        self._trainer = kind(Task(task_file.parent, task_file.name), prepare)
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
            case PutBack():
                self._trainer.put_back()
            case TrainRound(start):
                self._start, self._exchange = start, 0
                self._trainer.begin(start)
                return self._leg(work)
            case GoOn():
                return self._leg(work)
            case Evaluate(key, weights, shards):
                metrics, samples = self._trainer.evaluate(weights, shards)
                return [(EVALUATING_S, Evaluated(key, metrics, samples, 0.0))]
            case Redo(order, start):
                message = self._trainer.another().redo(order, start, lambda: True)
                assert message
                return [(order.steps * self._step_s, Redone(message))]
            case _:
                raise AssertionError(f"nobody asks for {work} here")
        return []

    def over(self, leg: LegDone) -> None:
        """A leg has ended."""

    def _leg(self, work: TrainRound | GoOn) -> list[tuple[float, Done]]:
        assert self._start
        leg = self._trainer.leg(work.weights, lambda *_: Verdict.GO_ON, work.factors)
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
        )
        return [(seconds, done)]
