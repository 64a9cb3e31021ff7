"""The orders of a member to its trainer, and the trainer's answers. Values only.

A leg is the local steps between two exchanges. The first one of a round comes with `TrainRound`, each further one with
`NextLeg`; between them the trainer stands waiting. Weights are never changed once they are said; a difference belongs
to whoever hears it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from axonp2p.blobs.pieces import PieceBook
from axonp2p.errors import TaskMistake
from axonp2p.training.messages import RedoSegment, StartRound, TaskFailed
from axonp2p.training.trainer.marks import MarkBytes
from axonp2p.verification.claims import SegmentRedone

Key = tuple[int, int]
"""A round and an attempt at it: what belongs to an older one is of no interest any more."""


def key_of(start: StartRound) -> Key:
    """The round and attempt that an order starts."""
    return start.round, start.attempt


def exchanges_of(start: StartRound) -> int:
    """How many exchanges, and so legs, the round has."""
    return -(-start.steps // start.settings.exchange_every)


@dataclass(frozen=True)
class TrainRound:
    """Take the first leg of this round, from these weights."""

    start: StartRound
    weights: Tensor = field(repr=False)
    factors: Tensor | None = field(repr=False, default=None)
    """By how much to lengthen each value's steps, flat; None: not at all."""


@dataclass(frozen=True)
class NextLeg:
    """Take the next leg of the round, from these weights."""

    weights: Tensor = field(repr=False)
    factors: Tensor | None = field(repr=False, default=None)
    """As in `TrainRound`."""


@dataclass(frozen=True)
class EndLegEarly:
    """End this leg of the round after its step, as at the end of its time: the others have gone on without it."""

    key: Key
    exchange: int
    """That follows on the leg."""


@dataclass(frozen=True)
class Abandon:
    """Stop the round at once: nothing more is wanted of it, nor of an evaluation."""


@dataclass(frozen=True)
class Accept:
    """The last round counts: what the inner optimiser remembers of it stays."""


@dataclass(frozen=True)
class RollBack:
    """The last round does not count: the inner optimiser forgets it."""


@dataclass(frozen=True)
class Evaluate:
    """Measure these weights on the held-out data of these shards."""

    key: Key
    weights: Tensor = field(repr=False)
    shards: Sequence[int]


@dataclass(frozen=True)
class Redo:
    """Do some steps of another member again, from the place that it committed to: whatever else is under way."""

    order: RedoSegment
    start: memoryview = field(repr=False)


@dataclass(frozen=True)
class TakeFrozen:
    """Put these frozen parameters of the job into the model, whose `model()` made others."""

    data: memoryview = field(repr=False)
    pieces: PieceBook = field(repr=False)


Work = TrainRound | NextLeg | EndLegEarly | Abandon | Accept | RollBack | Evaluate | Redo | TakeFrozen


@dataclass(frozen=True)
class Stepped:
    """How far the local steps of a round are."""

    key: Key
    step: int
    loss: float
    """Mean over the round's local steps so far."""
    samples: int


@dataclass(frozen=True)
class LegDone:
    """A leg has been taken."""

    key: Key
    exchange: int
    """Which one of the round, from 0: the exchange that follows on it."""
    difference: Tensor = field(repr=False)
    """Start minus end, flat. The member's from now on, to be changed."""
    steps: int
    samples: int
    loss: float
    """Mean over the leg's steps."""
    flops: int
    seconds: float
    waited: float
    """Seconds that the trainer stood waiting before it."""
    places: tuple[MarkBytes, ...] = field(repr=False, default=())
    """The states committed to: where it began, those on the way, and where it ended."""
    no_marks: str = ""
    """Why nothing could be committed to, although the round asks for it."""
    mark_seconds: float = 0.0
    """Of `seconds`, spent on that."""
    moved: bool = True
    """Whether any parameter is another one than before."""


@dataclass(frozen=True)
class Redone:
    """Another member's steps were done again."""

    message: SegmentRedone


@dataclass(frozen=True)
class Evaluated:
    """The metrics of a round's new weights."""

    key: Key
    metrics: dict[str, float]
    samples: int
    waited: float
    """Seconds that the trainer stood waiting between the last leg and this."""
    not_repeated: str = ""
    """Why steps of this member do not lead where they led when they are done again, as far as it was tried."""


@dataclass(frozen=True)
class FrozenTaken:
    """The model has the frozen parameters of the job."""

    name: bytes


@dataclass(frozen=True)
class TaskWentWrong:
    """The task's own code raised; whatever was being done is over."""

    mistake: TaskMistake

    @property
    def report(self) -> TaskFailed:
        """The message to the coordinator."""
        return TaskFailed(doing=self.mistake.message[:100], traceback=self.mistake.cause[:16000])


Done = Stepped | LegDone | Evaluated | TaskWentWrong | Redone | FrozenTaken
