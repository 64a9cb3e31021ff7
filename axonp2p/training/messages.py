"""The messages of the coordinator, the workers and the members' workers about training.

Each is the header of a frame that daemons carry unread (`ToWorker`, `FromWorker`, `Carry`).

    coordinator                               worker of each member
      | Prepare -------------------------------> |  imports the task, builds the model from the seed
      | <---------- Prepared(state), FileLayout  |  or TaskFailed(traceback)
      | AdoptState(state, senders) ------------> |  who lacks a state asks the members that hold it for its pieces
      |           AskPieces <----> Piece         |  between members
      | <------------------- StateAdopted        |
      | <-------------------------- AskPieces    |  of frozen parameters that no member holds, when a job is resumed
      | PieceList, Piece ----------------------> |
      | StartRound(round, attempt, state) -----> |  goes on from `state`: its candidate, or the last accepted one
      | <------------------- Progress ...        |
      |            SlicePart <----> SlicePart    |  between members, exchange after exchange: gather, then result
      | <------------------- RoundDone(state)    |  all members report the same state, or the round is redone
      | AskPieces -----------------------------> |  the state that a round led to, while the next one is trained
      | <------------------- PieceList, Piece    |
      | AskFiles ------------------------------> |  now and then: what the task wrote into /out
      | <--- OutputPart, OutputFile, OutputsSent |  (`jobs.output_messages`)
      | RedoSegment ---------------------------> |  do a few steps of another member again, from what it committed to
      |           AskPieces <----> Piece         |  between the two
      | <------------------- SegmentRedone       |

The state is weights and outer momentum; its name is the SHA-256 of the BLAKE3 of its pieces. A round is accepted by
the next `StartRound` naming the state that it led to, redone by naming the state before it. After the last round the
client asks for the pieces of the state, and writes the model's file from them (`FileLayout`).

Parameters without gradients are frozen: they are in no state. They are a file of their own, which every state names.
Each member has them from the task's `model()`; who has others asks for the pieces of that file, as for a state.

A round has one or more exchanges: after every `exchange_every` local steps the members exchange what they have moved
since the last one, and take an outer step. A member listed in `listeners` takes no part, but is sent the results:
one that joins late follows the others with them while it fetches the state that they began with.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.jobs.aggregation import MEAN, Rule
from axonp2p.jobs.output_messages import MOST_OUTPUTS, FileHash, OutputMessage
from axonp2p.tensors.coding import Coding
from axonp2p.training.options import StepOptions
from axonp2p.verification.claims import MOST_SEGMENT_STEPS, Mark, RoundDone, SegmentRedone, StateHash
from axonp2p.wire.codec import Message
from axonp2p.wire.frame import PAYLOAD_LIMIT
from axonp2p.wire.quantities import Count, Number, Seconds
from axonp2p.wire.ranks import MOST_MEMBERS, Rank
from axonp2p.wire.schema import Schema

Dtype = Literal[
    "U64",
    "I64",
    "F64",
    "C64",
    "F32",
    "U32",
    "I32",
    "BF16",
    "F16",
    "U16",
    "I16",
    "F8_E4M3",
    "F8_E5M2",
    "I8",
    "U8",
    "BOOL",
]
"""As safetensors calls them, in the order in which a file has them."""

LEAST_PART, MOST_PART = 1024, PAYLOAD_LIMIT // 8
"""Values in one part of a slice: in whatever coding it travels, it must fit a frame."""
MOST_HAVE = 2 * MOST_OUTPUTS
Shard = Annotated[int, msgspec.Meta(ge=0, lt=MOST_MEMBERS)]
Members = Annotated[list[Rank], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]


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
    step_scaling: bool = True
    """Whether steps of Adam and its kin are lengthened where the member's own noise made them short."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=2**51)] = 1
    """Local steps of the whole job, for the task's schedule."""
    step_options: StepOptions = msgspec.field(default_factory=StepOptions)
    """How a local step is taken."""
    schema: Schema = ""
    """Which messages of a job the client speaks (`wire.schema`)."""


class Prepared(Message, tag=True, frozen=True):
    """The model is built. Its `FileLayout` is the payload."""

    state: StateHash
    parameters: Count
    """Values that are coded in few bits and take the outer step: most that are trained."""
    values: Count
    """float32 values in the weights, buffers included: the length of the exchanged vector."""
    exact: Count = 0
    """Of the other values, about how many an exchange sends, in 32 bits each: what stays as it is costs nothing."""
    candidate: StateHash | None = None
    """Where the last round led to that was finished here, and of which it is not known whether it counts."""
    frozen: Count = 0
    """Bytes of its frozen parameters: those without gradients."""
    device: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "cpu"
    """The device of its steps, as the worker names it; members with the same one may redo them (`trainer.device`)."""


class TensorInfo(Message, frozen=True):
    """One tensor of the model's file (safetensors), and where its values stand in a state.

    A frozen one is in the file of the frozen parameters.
    """

    name: Annotated[str, msgspec.Meta(max_length=500)]
    """In the model's state dict."""
    dtype: Dtype
    """The type of its numbers."""
    shape: Annotated[list[Count], msgspec.Meta(max_length=64)]
    """How long it is in each dimension; a single number has none."""
    coding: Literal["values", "bits", "wide", "frozen"]
    """How the tensor stands in the state: one float32 for each number (two for a complex one), one for each part of its
    bits, or three for each number (`tensors.wide`). Frozen: its own bytes stand in the file of the frozen parameters.
    """
    begin: Count
    """Where its first value stands; of a frozen one its first byte."""
    apart: Count = 0
    """Of a wide tensor: how far the second values stand behind the first ones, and the third behind the second."""


class FileLayout(Message, frozen=True):
    """Which tensors the model's file has. Tensors that are tied have one place in the state and several names."""

    tensors: Annotated[list[TensorInfo], msgspec.Meta(max_length=2**14)]
    """In any order; each name once."""
    frozen_name: Count = 0
    """Where 16 values of a state name the file of the frozen parameters, if there are any (`tensors.frozen_name`)."""


class AdoptState(Message, tag=True, frozen=True):
    """Fetch this state and use it."""

    state: StateHash
    senders: Annotated[list[Rank], msgspec.Meta(max_length=MOST_MEMBERS)]
    """Members that hold it; empty if the coordinator itself sends it, as `FilePart`s."""


class StateAdopted(Message, tag=True, frozen=True):
    """This member holds the state now. A listener sends it again after every round."""

    state: StateHash


class ExchangeSettings(Message, frozen=True):
    """How the members of a round exchange, the same for all of them: chosen by the coordinator
    (`tuning.exchange_tuner`).
    """

    exchange_every: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """Local steps between two exchanges; the last exchange may follow on fewer."""
    overlap: bool
    """Whether the next local steps begin while an exchange is under way, whose result is then applied one later."""
    part: Annotated[int, msgspec.Meta(ge=LEAST_PART, le=MOST_PART)]
    """Values in one part of a slice."""
    patience: Seconds
    """How long the owner of a slice waits for the slowest while it has not learnt yet how long they need."""
    outer_learning_rate: Annotated[float, msgspec.Meta(ge=0, le=10)]
    """Of each outer step."""
    outer_momentum: Annotated[float, msgspec.Meta(ge=0, lt=1)]
    """Nesterov; 0: none."""
    rule: Rule = MEAN
    """By which owners make one value of the members'."""


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
    settings: ExchangeSettings
    """How they exchange."""
    seconds: Seconds
    """How long the local steps of the round may take, divided evenly among the exchanges; 0: as long as they do."""
    shares: Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**20)]], msgspec.Meta(max_length=MOST_MEMBERS)]
    """How large a slice each of `members` owns, in proportion; 0: none."""
    gather: Coding
    """How the receiver sends its own values."""
    result: Coding
    """How the receiver sends the mean of its slice."""
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


class RedoSegment(Message, tag=True, frozen=True):
    """Fetch what that member committed to, take the same steps from there on, and say where they lead.

    To that member itself: do so with its own. Nobody is convicted before that is known of all who speak.

    It ends nothing that is being done: it is done while the trainer has nothing else to do.
    """

    of: Rank
    """The member whose steps they are; it is asked for `start` by its name, as for a state."""
    round: Count
    attempt: Count
    start: Mark
    """That member's mark where the steps begin."""
    shards: Annotated[list[Shard], msgspec.Meta(min_length=1, max_length=MOST_MEMBERS)]
    """That member's, in that round."""
    round_steps: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    """`StartRound.steps` of that round."""
    steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_SEGMENT_STEPS)]
    """How many to take."""


class AskFiles(Message, tag=True, frozen=True):
    """Send the files that the task has written into /out. An earlier transfer is ended."""

    request: Count
    """Stands in all that is sent for it: what an earlier request still had on its way can be told apart."""
    have: Annotated[list[FileHash], msgspec.Meta(max_length=MOST_HAVE)] = []
    """Files that need not be sent (`jobs.output_messages.file_name_hash`)."""


class TaskFailed(Message, tag=True, frozen=True):
    """The task's own code raised."""

    doing: Annotated[str, msgspec.Meta(max_length=100)]
    """The worker's activity: "loading task.py", "model()", "loss()", ..."""
    traceback: Annotated[str, msgspec.Meta(max_length=16000)]
    """Only the frames of the task's own files."""


class FilePart(Message, tag=True, frozen=True):
    """The next bytes of a state's file, as payload; parts come in order."""

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
    """Send these pieces of a state, or of frozen parameters; with no numbers, the list of their hashes."""

    state: StateHash
    """The name of either."""
    numbers: Annotated[list[Count], msgspec.Meta(max_length=64)]
    """From 0."""


class PieceList(Message, tag=True, frozen=True):
    """The BLAKE3 of every piece of a state, one after the other, as payload."""

    state: StateHash


class Piece(Message, tag=True, frozen=True):
    """One piece of a state, as payload. An empty one: the sender does not hold that state (any more)."""

    state: StateHash
    number: Count
    """From 0."""


ToWorkerTraining = Prepare | AdoptState | StartRound | FilePart | AskPieces | AskFiles | RedoSegment | PieceList | Piece
FromWorkerTraining = (
    Prepared
    | StateAdopted
    | Progress
    | RoundDone
    | SegmentRedone
    | TaskFailed
    | AskPieces
    | PieceList
    | Piece
    | OutputMessage
)
BetweenMembers = SlicePart | AskPieces | PieceList | Piece
