"""Before a job is sent: what a peer's worker does in the first rounds, done here in one process, as the only member.

It finds what peers would refuse, what a task keeps between its steps, and what the bundle lacks. It runs the trainer of
a peer, with the task's own data of the first of all shards.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from axonp2p.kinds.train.local.trial_messages import TrialFound
from axonp2p.kinds.train.section import TrainJob
from axonp2p.plain_text import plural
from axonp2p.tensors.coding import EXACT
from axonp2p.training.messages import ExchangeSettings, Prepare, StartRound
from axonp2p.training.trainer.file_layout import why_not_loaded
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.training.trainer.outer_optimizer import State
from axonp2p.training.trainer.own_trials import OwnTrials
from axonp2p.training.trainer.samples.shards import Shards
from axonp2p.training.trainer.task import CheckedTask
from axonp2p.training.trainer.task_file import TaskCode
from axonp2p.training.worker.redo_server import RedoServer
from axonp2p.verification.rates import TRIALS, cut_for

STEPS, MARK_EVERY = 4, 2
"""Of each round, and of each of its segments."""
LONGEST_S = 30.0
"""No round of it begins later than this: a task whose steps are slow is tried in its first ones."""
TESTED, MOST_SHARDS = 256, 64
"""About how many test samples are evaluated at the most, and into how many shards the data may be cut for that."""

Tell = Callable[[str], None]
"""Is told what is begun now."""


def try_task(folder: Path, spec: TrainJob, server: RedoServer | None, tell: Tell) -> TrialFound:
    """The results that peers would have in the first rounds of the job. Raises `TaskMistake`, as their workers do.

    Without a `server`, which must have been made before this process had a second thread, no steps are done again.
    """
    task = _ObservedTask(folder, spec.task, tell)
    trainer = LocalTrainer(task, _prepare(spec))
    first, model = trainer.first_state(), task.made
    rounds = _Rounds(trainer, task, spec, server, folder)
    trained = rounds.train(first)
    task.when = ""
    for step in (spec.train.all_steps // 2, spec.train.all_steps - 1):
        task.schedule(step, spec.train.all_steps)
    metrics, _ = trainer.evaluate(first.weights, [0])
    tell("making the model's file and loading it")
    not_loaded = why_not_loaded(task, model, trainer.file_layout, first, trainer.frozen)
    train_samples, test_samples = _samples(task, spec)
    layout = trainer.layout
    return TrialFound(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        coded=layout.parameters,
        values=layout.values,
        exact=layout.moving,
        frozen_bytes=layout.frozen_bytes,
        train_samples=train_samples,
        test_samples=test_samples,
        flops_per_sample=trained.flops / trained.samples,
        step_s=trained.step_s,
        metrics=metrics,
        unchecked=trained.unchecked[:1000],
        not_loaded=not_loaded[:1000],
    )


class _Told(TaskCode):
    """A block in which the task's code runs, of which is told that it begins."""

    def __init__(self, inner: TaskCode, tell: Callable[[], None]) -> None:
        self._inner, self._tell = inner, tell

    def __enter__(self) -> None:
        self._tell()
        self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, trace)


class _ObservedTask(CheckedTask):
    """The task, with every call of its code told of."""

    def __init__(self, folder: Path, file: str, tell: Tell) -> None:
        self.tell = tell
        self.when = ""
        """In which step, where there is one."""
        self.made: Any = None
        """The model."""
        tell(f"loading {file}")
        super().__init__(folder, file)

    def code(self, doing: str) -> TaskCode:
        return _Told(super().code(doing), lambda: self.tell(f"{doing}{self.when}"))

    def model(self) -> Any:
        self.made = super().model()
        return self.made

    def data(self, split: str, shard: int, shards: int) -> Any | None:
        """Of much test data a smaller shard, and no part of one: `evaluate` may count on what `data` gives."""
        found = super().data(split, shard, shards)
        if split != "test" or found is None or shards == 1:
            return found
        with self.code(f'data("test", {shard}, {shards})'):
            smaller = min(MOST_SHARDS // shards, len(found) // TESTED)
        return super().data(split, shard, shards * smaller) if smaller > 1 else found


@dataclass(frozen=True)
class _Trained:
    """The results of the steps."""

    samples: int
    flops: int
    step_s: float
    """Seconds of a step, in the quickest of the rounds: the first one loads and counts more."""
    unchecked: str


class _Rounds:
    """The first rounds of a job, each of a few steps on both sides of a mark."""

    def __init__(
        self, trainer: LocalTrainer, task: _ObservedTask, spec: TrainJob, server: RedoServer | None, folder: Path
    ) -> None:
        train = spec.train
        self._trainer = trainer
        self._task = task
        self._trials = OwnTrials(0)
        self._redo = server.for_job(folder, _prepare(spec)) if server else None
        every = train.exchange_every or train.steps
        cut = cut_for(trainer.layout.values, train.steps, every, spec.need.memory * 2**20)
        self._mark_every = MARK_EVERY if train.checks and cut.every else 0
        self._unchecked = cut.why_not if train.checks else ""

    def train(self, first: State) -> _Trained:
        """All of them, as far as there is time."""
        weights = first.weights
        began, steps, samples, flops, step_s = time.monotonic(), 0, 0, 0, math.inf
        for number in range(TRIALS):
            start = _round(number, self._mark_every)
            self._count(steps)
            self._trainer.begin(start)
            leg_began = time.monotonic()
            leg = self._trainer.leg(weights, partial(self._count, steps))
            assert leg is not None
            steps, samples, flops = steps + leg.steps, samples + leg.samples, flops + leg.flops
            step_s = min(step_s, (time.monotonic() - leg_began) / leg.steps)
            self._try_again(start, leg.places)
            weights = weights - leg.difference
            self._trainer.accept()
            if self._unchecked or not self._mark_every or time.monotonic() - began > LONGEST_S:
                break
        return _Trained(samples, flops, step_s, self._unchecked)

    def _count(self, before: int, done: int = 0, *_: float) -> LegVerdict:
        self._task.when = f" in step {before + done + 1}"
        return LegVerdict.GO_ON

    def _try_again(self, start: StartRound, places: Sequence[MarkBytes]) -> None:
        if not self._mark_every or self._redo is None or self._unchecked:
            return
        self._unchecked = self._trainer.why_no_marks
        tried = None if self._unchecked else self._trials.order(start, tuple(places))
        if tried is None:
            return
        order, begin, claim = tried
        self._task.tell(f"redoing {plural(order.steps, 'step')} of round {start.round + 1}")
        if message := self._redo(order, begin, self._trainer, lambda: True):
            self._unchecked = self._trials.why_not(claim, message)


def _samples(task: _ObservedTask, spec: TrainJob) -> tuple[int | None, int]:
    """All samples to train on, and all that are held out. Raises `TaskMistake` where a peer would have none.

    None: nobody knows how many a stream has.
    """
    whole = Shards(task, 1, spec.train.seed, spec.train.batch)
    train = whole.train([0]).samples
    if train is not None and train < 2 * spec.need.peers:
        Shards(task, spec.need.peers, spec.train.seed, spec.train.batch).train([spec.need.peers - 1])
    return train, sum(len(test) for test in whole.test([0]))


def _prepare(spec: TrainJob) -> Prepare:
    """As the coordinator would say it to the first member."""
    train = spec.train
    return Prepare(
        rank=0, job="check", task=spec.task, shards=spec.need.peers, batch=train.batch, seed=train.seed,
        step_scaling=train.step_scaling, steps=train.all_steps, step_options=train.step_options,
    )  # fmt: skip


def _round(number: int, mark_every: int) -> StartRound:
    """One of a member that is alone."""
    settings = ExchangeSettings(
        exchange_every=STEPS, overlap=False, part=1024, patience=1.0, outer_learning_rate=1.0, outer_momentum=0.0
    )
    return StartRound(
        round=number, attempt=0, state=bytes(32), members=[0], listeners=[], shards=[0], steps=STEPS, seconds=0.0,
        settings=settings, shares=[1], gather=EXACT, result=EXACT, mark_every=mark_every,
    )  # fmt: skip
