"""Before a job is sent: can its steps be done again? The trial of a job's first rounds, in one process, as one member.

It finds what a task keeps between its steps, and what an empty folder lacks, before any peer trains for nothing.
"""

from __future__ import annotations

import time
from pathlib import Path

from axonp2p.kinds.train.section import TrainJob
from axonp2p.tensors.coding import EXACT
from axonp2p.training.messages import ExchangeSettings, Prepare, StartRound
from axonp2p.training.trainer.local_trainer import LegVerdict, LocalTrainer
from axonp2p.training.trainer.own_trials import TRIALS, OwnTrials
from axonp2p.training.trainer.task import Task
from axonp2p.training.worker.redo_server import RedoServer

STEPS, MARK_EVERY = 4, 2
"""Of each round, and of each of its segments."""
LONGEST_S = 30.0
"""No round of it begins later than this: a task whose steps are slow is tried in its first ones."""


def why_not_repeated(folder: Path, spec: TrainJob, server: RedoServer) -> str:
    """Why the task's steps, done again, do not lead where they led; empty when they do. Raises `TaskMistake`.

    The server must have been made before this process had a second thread.
    """
    train = spec.train
    prepare = Prepare(
        rank=0, job="check", task=spec.task, shards=spec.need.peers, batch=train.batch, seed=train.seed,
        steps=train.all_steps, step_options=train.step_options,
    )  # fmt: skip
    trainer = LocalTrainer(Task(folder, spec.task), prepare)
    redo, trials = server.for_job(folder, prepare), OwnTrials(0)
    weights, began = trainer.first_state().weights, time.monotonic()
    for number in range(TRIALS):
        start = _round(number)
        trainer.begin(start)
        leg = trainer.leg(weights, lambda *_: LegVerdict.GO_ON)
        assert leg is not None
        if trainer.why_no_marks:
            return trainer.why_no_marks
        tried = trials.order(start, leg.places)
        if tried is None:
            break
        order, begin, claim = tried
        message = redo(order, begin, trainer, lambda: True)
        if message and (why := trials.why_not(claim, message)):
            return why
        weights = weights - leg.difference
        trainer.accept()
        if time.monotonic() - began > LONGEST_S:
            break
    return ""


def _round(number: int) -> StartRound:
    """One of a member that is alone."""
    settings = ExchangeSettings(
        exchange_every=STEPS, overlap=False, part=1024, patience=1.0, outer_learning_rate=1.0, outer_momentum=0.0
    )
    return StartRound(
        round=number, attempt=0, state=bytes(32), members=[0], listeners=[], shards=[0], steps=STEPS, seconds=0.0,
        settings=settings, shares=[1], gather=EXACT, result=EXACT, mark_every=MARK_EVERY,
    )  # fmt: skip
