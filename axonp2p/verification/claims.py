"""The signed words of members on their work: the reports of their rounds, and where steps of others led when redone.

These are messages of training (`training.messages` has the others). They stand here because evidence is made of them,
which trackers and clients examine without torch.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count, Number, Seconds
from axonp2p.wire.ranks import MOST_MEMBERS, Rank

StateHash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Metric = Annotated[str, msgspec.Meta(max_length=40)]

MOST_MARKS = 100
"""In one round: with their sketches they must fit a frame's header."""
MOST_SEGMENT_STEPS = 64
SKETCH_BYTES = 256


class Mark(Message, frozen=True):
    """A commitment of a member: where its local steps had come to (weights, and the inner optimiser's memory)."""

    leg: Count
    """Which one of the round, from 0."""
    step: Count
    """Local steps of the round that were done by then."""
    name: StateHash
    """SHA-256 of the BLAKE3s of the pieces of all of it."""
    size: Annotated[int, msgspec.Meta(ge=1, le=2**33)]
    """In bytes."""
    sketch: Annotated[bytes, msgspec.Meta(min_length=SKETCH_BYTES, max_length=SKETCH_BYTES)]
    """32 numbers (float64, little-endian) by which weights are compared without sending them (`trainer.marking`)."""
    memory: Annotated[list[Number], msgspec.Meta(max_length=8)]
    """How large what the optimiser remembers is: the norm of each of its kinds of tensors, by their names' order."""


class RoundDone(Message, tag=True, frozen=True):
    """Local steps and exchange are done; `state` is where the round led to."""

    round: Count
    attempt: Count
    state: StateHash
    loss: Number
    """Mean over the local steps."""
    samples: Count
    flops: Count
    """Floating point operations of the local steps, counted."""
    train_seconds: Seconds
    """Spent on local steps."""
    exchange_seconds: Seconds
    """In which no local step could be taken because of an exchange or an outer step."""
    exchanges: Count
    """How many there were."""
    left_out: Annotated[list[Rank], msgspec.Meta(max_length=MOST_MEMBERS)]
    """Members that sent parts of this member's slice too late, or not at all: their values follow later."""
    kept_back: Count
    """Values of this member that the others went on without, counted once an exchange."""
    slices: Annotated[list[StateHash], msgspec.Meta(max_length=MOST_MEMBERS)]
    """SHA-256 of all results of each member's slice, in the order of `members`: who differs is found by it."""
    sent_bytes: Count
    """To other members, in this round's exchange."""
    received_bytes: Count
    """From other members, in this round's exchange."""
    metrics: Annotated[dict[Metric, Number], msgspec.Meta(max_length=32)]
    """On this member's shards of the test split, of the new weights."""
    test_samples: Count
    """How many samples the metrics are the mean of."""
    marks: Annotated[list[Mark], msgspec.Meta(max_length=MOST_MARKS)] = []
    """The commitments of the member, in order, when it was told to."""
    no_marks: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Why it could commit to nothing although it was told to."""
    mark_seconds: Seconds = 0.0
    """Of `train_seconds`, spent on `marks`."""
    unmoved: Count = 0
    """How many of its legs of local steps ended with the very parameters that they began with."""
    not_repeated: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Why its own steps, done again in the first rounds to try it, do not lead where they led; empty when they do."""


class SegmentRedone(Message, tag=True, frozen=True):
    """Where the steps led that were done again."""

    of: Rank
    """The member whose steps they are."""
    round: Count
    attempt: Count
    step: Count
    """Where they began."""
    start: StateHash
    """The name of what they began with."""
    end: Mark | None
    """The commitment that this member would have made; None when it could not be done."""
    before_last: Annotated[bytes, msgspec.Meta(max_length=SKETCH_BYTES)] = b""
    """The sketch before the last of the steps: what it would make to leave one out."""
    flops: Count = 0
    """Spent on it."""
    failed: Literal["", "not handed over", "other bytes", "cannot be done"] = ""
    """Why there is no end. "other bytes": what was handed over has the right name, but not the sketch beside it."""
