"""What the coordinator, the workers and the members' workers say to each other about training.

Each is the header of a frame that daemons carry unread (`ToWorker`, `FromWorker`, `Carry`).

    coordinator                               worker of each member
      | Prepare -------------------------------> |  imports the task, builds the model from the seed
      | <------------------- Prepared(state)     |  or TaskFailed(traceback)
      | GiveState / <- StateAdopted              |  members whose state differs get it from another member
      | StartRound(round, attempt, state) -----> |  goes on from `state`: its candidate, or the last accepted one
      | <------------------- Progress ...        |
      |            SlicePart <----> SlicePart    |  between members: gather, then result
      | <------------------- RoundDone(state)    |  all members report the same state, or the round is redone
      | SendFile ------------------------------> |
      | <------------------- FilePart ...        |

The state is weights and outer momentum; its name is the SHA-256 of their bytes. A round is accepted by the next
`StartRound` (or `SendFile`) naming the state that it led to, redone by naming the state before it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.frame import PAYLOAD_LIMIT
from axonp2p.wire.ranks import MOST_MEMBERS, Rank

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
StateHash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Metric = Annotated[str, msgspec.Meta(max_length=40)]
Number = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
"""Finite: one member's nan would make the sums of all nan."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

VALUES_A_PART = PAYLOAD_LIMIT // 16
"""float32 values in one part of a slice: 256 KiB, so that control messages slip between them."""


class Prepare(Message, tag=True, frozen=True):
    """Load the task and build its model."""

    rank: Rank
    """The rank of the member that this is sent to; it stays the same for as long as the job lasts."""
    job: Annotated[str, msgspec.Meta(max_length=64)]
    task: Annotated[str, msgspec.Meta(max_length=200)]
    """The task's file, relative to the bundle."""
    shards: Annotated[int, msgspec.Meta(ge=1, le=64)]
    """Into how many the data is cut."""
    batch: Annotated[int, msgspec.Meta(ge=1, le=2**20)]
    """Samples a local step."""
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    """Of the job: it fixes first weights, batches and dropout."""
    first_round: Count = 0
    """Above 0 when a job is resumed."""


class Prepared(Message, tag=True, frozen=True):
    """The model is built."""

    state: StateHash
    parameters: Count
    """Trainable and frozen ones."""
    values: Count
    """float32 values in the weights, buffers included: the length of the exchanged vector."""


class GiveState(Message, tag=True, frozen=True):
    """Send your accepted state to the member with that rank, over the mesh."""

    to: Rank
    """Rank of the member that lacks it."""


class AdoptState(Message, tag=True, frozen=True):
    """Wait for this state from the member with that rank (or from the coordinator, when it is None), then use it."""

    state: StateHash
    sender: Rank | None
    """Who will send it."""


class StateAdopted(Message, tag=True, frozen=True):
    """The state arrived, has the right hash, and is the accepted one now."""

    state: StateHash


class StartRound(Message, tag=True, frozen=True):
    """Train `steps` local steps from `state` on `shards`, then exchange with `members`."""

    round: Count
    attempt: Count
    state: StateHash
    members: Annotated[list[Rank], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]
    """Ranks of all who take part; number i owns slice i."""
    shards: Annotated[list[Rank], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]
    """The receiver's."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """Local steps."""


class Progress(Message, tag=True, frozen=True):
    """How far the local steps are; at most twice a second."""

    round: Count
    attempt: Count
    step: Count
    """Local steps done."""
    loss: Number
    """Mean over the local steps so far."""
    samples: Count


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
    """Spent on exchange and outer step."""
    sent_bytes: Count
    """To other members, in this round's exchange."""
    received_bytes: Count
    """From other members, in this round's exchange."""
    metrics: Annotated[dict[Metric, Number], msgspec.Meta(max_length=32)]
    """On this member's shards of the test split, of the new weights."""
    test_samples: Count
    """How many samples the metrics are the mean of."""


class TaskFailed(Message, tag=True, frozen=True):
    """The task's own code raised."""

    doing: Annotated[str, msgspec.Meta(max_length=100)]
    """What the worker was doing: "loading task.py", "model()", "loss()", ..."""
    traceback: Annotated[str, msgspec.Meta(max_length=16000)]
    """Only the frames of the task's own files."""


class SendFile(Message, tag=True, frozen=True):
    """Send the accepted state: as `model` (safetensors of the state dict) or as `state` (to go on from later)."""

    what: Literal["model", "state"]
    """Which file."""
    state: StateHash


class FilePart(Message, tag=True, frozen=True):
    """The next bytes of a file, as payload; parts come in order. Also how a state travels between members."""

    what: Literal["model", "state"]
    """Which file."""
    offset: Count
    total: Count
    sha256: StateHash
    """Of the whole file. For a state it is its name."""


class SlicePart(Message, tag=True, frozen=True):
    """float32 values (little endian, as payload) of one slice of the difference, between members.

    `gather`: the sender's own values, for the owner of the slice. `result`: the owner's weighted mean, for everyone.
    """

    round: Count
    attempt: Count
    phase: Literal["gather", "result"]
    """Own values, or the mean."""
    slice: Rank
    """The slice's owner."""
    offset: Count
    """In values, from the start of the slice."""
    samples: Count
    """The sender's weight in the mean (gather), or the sum of all weights (result)."""


ToWorkerTraining = Prepare | GiveState | AdoptState | StartRound | SendFile | FilePart
FromWorkerTraining = Prepared | StateAdopted | Progress | RoundDone | TaskFailed | FilePart
BetweenMembers = SlicePart | FilePart
