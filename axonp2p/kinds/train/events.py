"""The events of rounds: how far they are, how the peers exchange, who comes, is left behind or too late."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from axonp2p.client.events.event import Event
from axonp2p.kinds.train.check_events import (
    ChecksAwaited,
    ChecksOff,
    ChecksUnended,
    NothingLearnt,
    PeerUnchecked,
    WorkChecked,
)
from axonp2p.wire.json_form import ready_to_decode
from axonp2p.wire.quantities import Count, Number, PlainText


class ExchangeChosen(Event, frozen=True):
    """From this round on the peers exchange like this, as their links and the time of their steps have it."""

    round: Count
    """From 0."""
    exchange_every: Count
    """Local steps between two exchanges."""
    bits: Count
    """A value's."""
    overlap: bool
    """Whether the next local steps begin while an exchange is under way."""
    density: dict[str, Number]
    """By peer: about which share of its values it sends; the rest follows later."""
    outer_learning_rate: Number
    """Of the step that all take after an exchange."""
    outer_momentum: Number
    """Of the same."""
    round_bytes: Count
    """Among the peers in a round, foreseen."""
    dense_bytes: Count
    """Bytes of an exchange after every step, in 32 bits."""
    why: str
    aggregation: str = "mean"
    """By which rule one value is made of the peers'."""
    hostile: Count = 0
    """How many of them may lie without harm."""


class RoundProgress(Event, frozen=True):
    """Somewhere inside a round. Comes at most a few times a second; not kept on disk."""

    passing: ClassVar[bool] = True

    round: Count
    """From 0."""
    rounds: Count
    fraction: Number
    """How much of this round's local steps the slowest peer has done, 0 to 1."""
    loss: Number
    """Of the steps so far."""
    samples_per_second: dict[str, Number]
    eta_s: Number | None
    """To the job's end; None while nobody knows."""


class PeerRound(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one peer in an accepted round, as it reported it. Values and bytes are those of the exchanges."""

    train_seconds: Number
    """Spent on local steps."""
    exchange_seconds: Number
    """In which it could take no local step because of an exchange; the wait for slower peers is part of it."""
    exchanges: Count
    """How many it took part in."""
    samples: Count
    sent_bytes: Count
    """To other peers."""
    received_bytes: Count
    """From other peers."""
    kept_back: Count = 0
    """Values that came too late for the others, and follow later."""
    credits: Number = 0.0
    """The peer's in this job so far: of counter-signed receipts."""


class RoundFinished(Event, frozen=True):
    """All peers hold the same new weights."""

    round: Count
    """From 0."""
    rounds: Count
    loss: Number
    """Training loss, mean over the round's samples."""
    metrics: dict[str, Number]
    """Held-out, mean over the test samples."""
    samples: Count
    samples_per_second: dict[str, Number]
    seconds: Number
    """From the start of the round's first attempt."""
    wire_bytes: Count
    """The whole job's so far."""
    credits: Number
    """The whole job's so far."""
    eta_s: Number
    """To the job's end."""
    round_bytes: Count = 0
    """Among the peers in this round, each byte counted once."""
    dense_bytes: Count = 0
    """The same with an exchange in 32 bits after every step."""
    exchange_seconds: Number = 0.0
    """In which the peer that waited longest could take no local step because of exchanges."""
    peers: dict[str, PeerRound] = {}
    """The work of each peer that took part."""


class RoundRedone(Event, frozen=True):
    """The round starts again from the last accepted weights."""

    round: Count
    attempt: Count
    """The one that begins, from 0."""
    reason: str


class ValuesLate(Event, frozen=True):
    """Some exchanges of a round went on without values that came too late: their peers add them to later ones."""

    round: Count
    values: dict[str, Count]
    """By peer: how many, counted once an exchange."""


class PeerLeftBehind(Event, frozen=True):
    """The others go on without the peer, which keeps its lease and takes part again when it has caught up."""

    peer: str
    round: Count
    reason: str
    left: Count
    """How many peers go on."""


class PeerJoined(Event, frozen=True):
    """The peer has the others' weights, and takes part from this round on."""

    peer: str
    round: Count


class PeersStarting(Event, frozen=True):
    """Some peers have had the bundle for a while, and have not come through a local step."""

    loading: list[str]
    """Where the worker still loads Python and torch."""
    building: list[str]
    """Where it runs the task's `model()`."""
    seconds: Number
    """Since all had the bundle."""
    stepping: list[str] = []
    """Where `data()`, or the first local step, has taken long."""
    step_seconds: Number = 0.0
    """Since these were told to begin."""


class PeerReady(Event, frozen=True):
    """The peer's worker has built the model."""

    peer: str
    rank: Count
    parameters: Count
    """That are trained and take the outer step."""


class TrainingStops(Event, frozen=True):
    """The job ends before its last round, after so many. Its result is that of the finished rounds."""

    rounds: Count
    metric: PlainText = ""
    """By which none of the last rounds was better than the best; empty: the job's owner stopped it."""
    best_round: Count = 0
    """From 0."""
    best: Number = 0.0
    """The metric's value after it."""


class BestUnknown(Event, frozen=True):
    """job.toml says by which metric a round is the best, and `evaluate` does not give it: no round is."""

    metric: PlainText
    """That of `best` in job.toml."""
    given: list[PlainText]
    """The metrics that it gives."""


class StateFound(Event, frozen=True):
    """The job continues from here."""

    round: Count
    """How many rounds are done."""
    rounds: Count
    waiting: list[str] = []
    """Peers that waited, and hold what these rounds led to."""


class StateDamaged(Event, frozen=True):
    """A state on this disk is not what its name or the books say: it is put aside, and the one before is used."""

    round: Count
    """How many rounds were in it."""
    file: str
    """Where it is now."""


class RoundsLost(Event, frozen=True):
    """These rounds were in the books, but no state after them is left: they are trained again."""

    first: Count
    """From 0."""
    last: Count
    """From 0; it is lost too."""


class TaskFilesKept(Event, frozen=True):
    """Files that the task wrote into /out at a peer lie in the job's folder, in out/PEER. Told of each peer when the
    first ones came, when some were left out, and at the end."""

    peer: str
    files: Count
    """That lie there now."""
    bytes: Count
    """Of these."""
    left_out: Count
    """Files that did not come: too many, too large together, or with a name that no file may have."""


class TaskFilesLost(Event, frozen=True):
    """From now on no files of the task come home: this computer's disk does not take them."""

    reason: str
    """The error of the disk."""


TrainEvent = (
    PeerReady
    | PeersStarting
    | ExchangeChosen
    | RoundProgress
    | RoundFinished
    | ValuesLate
    | WorkChecked
    | ChecksOff
    | ChecksAwaited
    | ChecksUnended
    | NothingLearnt
    | PeerUnchecked
    | PeerJoined
    | PeerLeftBehind
    | RoundRedone
    | TrainingStops
    | BestUnknown
    | StateFound
    | StateDamaged
    | RoundsLost
    | TaskFilesKept
    | TaskFilesLost
)
"""All that this kind of job tells beside what every job does."""

ready_to_decode(TrainEvent)
