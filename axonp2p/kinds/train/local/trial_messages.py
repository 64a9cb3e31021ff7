"""The messages of a trial of a task to the `axon check` that began it, on its worker's channel; and what follows."""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.errors import TaskMistake
from axonp2p.jobs.task_fixes import task_fix
from axonp2p.kinds.train.section import TrainJob
from axonp2p.tensors.checkpoint_file import Model
from axonp2p.training.messages import TaskFailed
from axonp2p.training.tuning.costs import ExchangeFacts
from axonp2p.training.tuning.exchange_tuner import ExchangeChoice, choose
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count, Number, Seconds

_Name = Annotated[str, msgspec.Meta(max_length=40)]


class TrialDoing(Message, tag=True, frozen=True):
    """The part that is begun now; the one before is over."""

    what: Annotated[str, msgspec.Meta(max_length=200)]


class TrialFound(Message, tag=True, frozen=True):
    """The task made no mistake; what came of it."""

    parameters: Count
    """Of the model."""
    coded: Count
    """Values of the exchanged vector that are coded in few bits (`Prepared.parameters`)."""
    values: Count
    """The length of the exchanged vector."""
    exact: Count
    """Of the other values, about how many an exchange sends."""
    frozen_bytes: Count
    """Bytes of its frozen parameters, which are in no exchange and in no state."""
    train_samples: Count | None
    """None: nobody knows how many a stream has."""
    test_samples: Count
    flops_per_sample: Annotated[float, msgspec.Meta(ge=0, le=1e300)]
    """Operations of a local step for each of its samples."""
    step_s: Seconds
    """Seconds a local step took here."""
    metrics: Annotated[dict[_Name, Number], msgspec.Meta(max_length=32)]
    """Of the first weights, on some of the test data."""
    unchecked: Annotated[str, msgspec.Meta(max_length=1000)]
    """Why peers could not check each other's work; empty when they can, or the job wants no checks."""
    not_loaded: Annotated[str, msgspec.Meta(max_length=1000)]
    """Why the model's file does not go back into the model; empty when it does."""

    @property
    def state_bytes(self) -> int:
        """Those of a state of its model."""
        return Model(self.coded, self.values).state_bytes

    def first_exchange(self, spec: TrainJob) -> ExchangeChoice:
        """How the job's peers would exchange while nothing is known of their lines."""
        members = tuple(range(spec.need.peers))
        facts = ExchangeFacts(
            values=self.values,
            parameters=self.coded,
            exact=self.exact,
            members=members,
            steps=spec.train.steps,
            step_s=dict.fromkeys(members, self.step_s),
        )
        return choose(spec.train, facts)


FromTrial = TrialDoing | TrialFound | TaskFailed


def mistake_of(said: TaskFailed) -> TaskMistake:
    """The error for a mistake of the task."""
    return TaskMistake(f"the task made a mistake in {said.doing}", cause=said.traceback, fix=task_fix(said.traceback))
