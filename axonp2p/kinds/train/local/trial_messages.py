"""What a trial of a task says to the `axon check` that began it, on the channel of its worker."""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.training.messages import TaskFailed
from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count, Number, Seconds

_Name = Annotated[str, msgspec.Meta(max_length=40)]


class TrialDoing(Message, tag=True, frozen=True):
    """What is begun now; whatever was said of before is over."""

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


FromTrial = TrialDoing | TrialFound | TaskFailed
