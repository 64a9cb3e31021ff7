"""What the coordinator, the workers and the members' workers say to each other about training.

Each is the header of a frame that daemons carry unread (`ToWorker`, `FromWorker`, `Carry`).

    coordinator                               worker of each member
      | Prepare -------------------------------> |  imports the task, builds the model from the seed
      | <------------------- Prepared(state)     |  or TaskFailed(traceback)
      | AdoptState(state, senders) ------------> |  who lacks a state asks the members that hold it for its pieces
      |           AskPieces <----> Piece         |  between members
      | <------------------- StateAdopted        |
      | StartRound(round, attempt, state) -----> |  goes on from `state`: its candidate, or the last accepted one
      | <------------------- Progress ...        |
      |            SlicePart <----> SlicePart    |  between members, exchange after exchange: gather, then result
      | <------------------- RoundDone(state)    |  all members report the same state, or the round is redone
      | AskPieces -----------------------------> |  the state that a round led to, while the next one is trained
      | <------------------- PieceList, Piece    |
      | RedoSegment ---------------------------> |  do a few steps of another member again, from what it committed to
      |           AskPieces <----> Piece         |  between the two
      | <------------------- SegmentRedone       |
      | SendFile ------------------------------> |
      | <------------------- FilePart ...        |

The state is weights and outer momentum; its name is the SHA-256 of the SHA-256 of its pieces. A round is accepted by
the next `StartRound` (or `SendFile`) naming the state that it led to, redone by naming the state before it.

A round has one or more exchanges: after every `exchange_every` local steps the members exchange what they have moved
since the last one, and take an outer step. Who is listed in `listeners` takes no part, but is sent the results: a
member that joins late follows the others with them while it fetches the state that they began with.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.jobs.aggregation import MEAN, Rule
from axonp2p.tensors.coding import Coding
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import PAYLOAD_LIMIT
from axonp2p.wire.quantities import Count, Number, Seconds
from axonp2p.wire.ranks import MOST_MEMBERS, Rank
from axonp2p.wire.schema import Schema

StateHash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Metric = Annotated[str, msgspec.Meta(max_length=40)]

LEAST_PART, MOST_PART = 1024, PAYLOAD_LIMIT // 8
"""Values in one part of a slice: in whatever coding it travels, it must fit a frame."""
Shard = Annotated[int, msgspec.Meta(ge=0, lt=MOST_MEMBERS)]
Members = Annotated[list[Rank], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]


MOST_MARKS = 100
"""In one round: with their sketches they must fit a frame's header."""
MOST_SEGMENT_STEPS = 64
SKETCH_BYTES = 256


class Mark(Message, frozen=True):
    """What a member commits to: where its local steps had come to (weights, and the inner optimiser's memory)."""

    leg: Count
    """Which one of the round, from 0."""
    step: Count
    """Local steps of the round that were done by then."""
    name: StateHash
    """SHA-256 of the SHA-256s of the pieces of all of it."""
    size: Annotated[int, msgspec.Meta(ge=1, le=2**33)]
    """In bytes."""
    sketch: Annotated[bytes, msgspec.Meta(min_length=SKETCH_BYTES, max_length=SKETCH_BYTES)]
    """32 numbers (float64, little-endian) by which weights are compared without sending them (`checking.sketch`)."""
    memory: Annotated[list[Number], msgspec.Meta(max_length=8)]
    """How large what the optimiser remembers is: the norm of each of its kinds of tensors, by their names' order."""


class Prepare(Message, tag=True, frozen=True):
    """Load the task and build its model.

    To a worker that has done so: leave what is being done, and say where you are. A coordinator says that which takes
    the place of one that died.
    """

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
    error_feedback: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """How much of what was held back is kept for the next exchange."""
    momentum_correction: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    """Momentum that each member adds to its difference before anything is held back; 0: none."""
    step_scaling: bool = True
    """Whether steps of Adam and its kin are lengthened where the member's own noise made them short."""
    clip: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """The largest norm of a mean difference: each member's is clipped to this, over the root of their number; 0: no
    clipping."""
    schema: Schema = ""
    """Which messages of a job the client speaks (`wire.schema`)."""


class Prepared(Message, tag=True, frozen=True):
    """The model is built."""

    state: StateHash
    parameters: Count
    """Values that are coded in few bits and take the outer step: most that are trained."""
    values: Count
    """float32 values in the weights, buffers included: the length of the exchanged vector."""
    exact: Count = 0
    """Of the other values, about how many an exchange sends, in 32 bits each: what stays as it is costs nothing."""
    candidate: StateHash | None = None
    """Where the last round led to that was finished here, and of which it is not known whether it counts."""


class AdoptState(Message, tag=True, frozen=True):
    """Fetch this state and use it."""

    state: StateHash
    senders: Annotated[list[Rank], msgspec.Meta(max_length=MOST_MEMBERS)]
    """Who holds it; empty when the coordinator itself sends it, as `FilePart`s."""


class StateAdopted(Message, tag=True, frozen=True):
    """This member holds the state now. Who follows as a listener says it again after every round."""

    state: StateHash


class StartRound(Message, tag=True, frozen=True):
    """Train local steps from `state` on `shards`, and exchange with `members` on the way and at the end."""

    round: Count
    attempt: Count
    state: StateHash
    members: Members
    """Ranks of all who take part."""
    listeners: Annotated[list[Rank], msgspec.Meta(max_length=MOST_MEMBERS)]
    """Ranks of those that are only sent the results. The receiver may be one of them."""
    shards: Annotated[list[Shard], msgspec.Meta(max_length=MOST_MEMBERS)]
    """The receiver's; a listener has none."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """Local steps, at most."""
    exchange_every: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """Local steps between two exchanges; the last exchange may follow on fewer."""
    seconds: Seconds
    """How long the local steps of the round may take, divided evenly among the exchanges; 0: as long as they do."""
    overlap: bool
    """Whether the next local steps begin while an exchange is under way, whose result is then applied one later."""
    shares: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**20)]], msgspec.Meta(max_length=MOST_MEMBERS)]
    """How large a slice each of `members` owns, in proportion; 0: none."""
    part: Annotated[int, msgspec.Meta(ge=LEAST_PART, le=MOST_PART)]
    """Values in one part of a slice."""
    gather: Coding
    """How the receiver sends its own values."""
    result: Coding
    """How the receiver sends the mean of its slice."""
    patience: Seconds
    """How long the owner of a slice waits for the slowest while it has not learnt yet how long they need."""
    outer_learning_rate: Annotated[float, msgspec.Meta(ge=0, le=10)]
    """Of each outer step."""
    outer_momentum: Annotated[float, msgspec.Meta(ge=0, lt=1)]
    """Nesterov; 0: none."""
    rule: Rule = MEAN
    """By which owners make one value of the members'."""
    mark_every: Annotated[int, msgspec.Meta(ge=0, le=MOST_SEGMENT_STEPS)] = 0
    """Commit to where the local steps are at the start of each leg, after every so many of them, and at its end; 0:
    nothing is committed to."""


class Progress(Message, tag=True, frozen=True):
    """How far the local steps are; twice a second, and after the last one before every exchange."""

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
    """What the member commits to, in order, when it was told to."""
    no_marks: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Why it could commit to nothing although it was told to."""
    mark_seconds: Seconds = 0.0
    """Of `train_seconds`, spent on `marks`."""
    unmoved: Count = 0
    """How many of its legs of local steps ended with the very parameters that they began with."""
    not_repeated: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Why its own steps, done again in the first rounds to try it, do not lead where they led; empty when they do."""


class RedoSegment(Message, tag=True, frozen=True):
    """Fetch what that member committed to, take the same steps from there on, and say where they lead.

    To that member itself: do so with its own. Nobody is convicted before that is known of all who speak.

    It ends nothing that is being done: it is done while the trainer has nothing else to do.
    """

    of: Rank
    """Whose steps; it is asked for `start` by its name, as for a state."""
    round: Count
    attempt: Count
    start: Mark
    """What that member committed to, where the steps begin."""
    shards: Annotated[list[Shard], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]
    """That member's, in that round."""
    round_steps: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """`StartRound.steps` of that round."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_SEGMENT_STEPS)]
    """How many to take."""


class SegmentRedone(Message, tag=True, frozen=True):
    """Where the steps led that were done again."""

    of: Rank
    """Whose."""
    round: Count
    attempt: Count
    step: Count
    """Where they began."""
    start: StateHash
    """The name of what they began with."""
    end: Mark | None
    """What this member would have committed to; None when it could not be done."""
    before_last: Annotated[bytes, msgspec.Meta(max_length=SKETCH_BYTES)] = b""
    """The sketch before the last of the steps: what it would make to leave one out."""
    flops: Count = 0
    """Spent on it."""
    failed: Literal["", "not handed over", "other bytes", "cannot be done"] = ""
    """Why there is no end. "other bytes": what was handed over has the right name, but not the sketch beside it."""


class TaskFailed(Message, tag=True, frozen=True):
    """The task's own code raised."""

    doing: Annotated[str, msgspec.Meta(max_length=100)]
    """What the worker was doing: "loading task.py", "model()", "loss()", ..."""
    traceback: Annotated[str, msgspec.Meta(max_length=16000)]
    """Only the frames of the task's own files."""


class SendFile(Message, tag=True, frozen=True):
    """Send the accepted state's weights as a safetensors file of the model's state dict."""

    state: StateHash
    whole: bool = True
    """False: its first part only, without its bytes: that names the whole file's hash."""


class FilePart(Message, tag=True, frozen=True):
    """The next bytes of a file, as payload; parts come in order."""

    what: Literal["model", "state"]
    """Which file."""
    offset: Count
    total: Count
    sha256: StateHash
    """Of the whole file."""


class SlicePart(Message, tag=True, frozen=True):
    """Encoded values (as payload) of one slice of the difference, between members.

    `gather`: the sender's own values, for the owner of the slice. `result`: what the owner made of them by
    the round's rule, mostly the weighted mean, for everyone.
    """

    round: Count
    attempt: Count
    exchange: Count
    """Which one of the round, from 0."""
    phase: Literal["gather", "result"]
    """Own values, or the mean."""
    slice: Rank
    """The slice's owner."""
    offset: Count
    """In values, from the start of the slice."""
    samples: Count
    """The sender's weight in the mean (gather), or the sum of all weights in it (result)."""
    left_out: Annotated[list[Rank], msgspec.Meta(max_length=MOST_MEMBERS)] = []
    """Of a result: members whose values are not in it. They keep them for the next exchange."""


class AskPieces(Message, tag=True, frozen=True):
    """Send these pieces of a state; with no numbers, the list of their hashes."""

    state: StateHash
    numbers: Annotated[list[Count], msgspec.Meta(max_length=64)]
    """From 0."""


class PieceList(Message, tag=True, frozen=True):
    """The SHA-256 of every piece of a state, one after the other, as payload."""

    state: StateHash


class Piece(Message, tag=True, frozen=True):
    """One piece of a state, as payload. An empty one: the sender does not hold that state (any more)."""

    state: StateHash
    number: Count
    """From 0."""


ToWorkerTraining = Prepare | AdoptState | StartRound | SendFile | FilePart | AskPieces | RedoSegment
FromWorkerTraining = (
    Prepared | StateAdopted | Progress | RoundDone | SegmentRedone | TaskFailed | FilePart | PieceList | Piece
)
BetweenMembers = SlicePart | AskPieces | PieceList | Piece
