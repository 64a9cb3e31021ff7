"""The events of rounds: how far they are, how the peers exchange, who comes, is left behind or too late."""

from __future__ import annotations

import msgspec

from axonp2p.client.event import Event


class ExchangeChosen(Event, frozen=True):
    """From this round on the peers exchange like this, as their links and the time of their steps have it."""

    round: int
    """From 0."""
    exchange_every: int
    """Local steps between two exchanges."""
    bits: int
    """A value's."""
    overlap: bool
    """Whether the next local steps begin while an exchange is under way."""
    density: dict[str, float]
    """By peer: about which share of its values it sends; the rest follows later."""
    outer_learning_rate: float
    outer_momentum: float
    round_bytes: int
    """Among the peers in a round, foreseen."""
    dense_bytes: int
    """What they would exchange if they did so after every step, in 32 bits."""
    why: str
    aggregation: str = "mean"
    """By which rule one value is made of the peers'."""
    hostile: int = 0
    """How many of them may lie without harm."""


class RoundProgress(Event, frozen=True):
    """Somewhere inside a round. Comes at most a few times a second; not kept on disk."""

    round: int
    """From 0."""
    rounds: int
    fraction: float
    """How much of this round's local steps the slowest peer has done, 0 to 1."""
    loss: float
    samples_per_second: dict[str, float]
    eta_s: float | None


class PeerRound(msgspec.Struct, frozen=True, kw_only=True):
    """What one peer did in an accepted round, by its own word. Values and bytes are those of the exchanges."""

    train_seconds: float
    """Spent on local steps."""
    exchange_seconds: float
    """In which it could take no local step because of an exchange; the wait for slower peers is part of it."""
    exchanges: int
    samples: int
    sent_bytes: int
    received_bytes: int
    kept_back: int = 0
    """Values that came too late for the others, and follow later."""
    credits: float = 0.0
    """The peer's in this job so far: of counter-signed receipts."""


class RoundFinished(Event, frozen=True):
    """All peers hold the same new weights."""

    round: int
    """From 0."""
    rounds: int
    loss: float
    """Training loss, mean over the round's samples."""
    metrics: dict[str, float]
    """Held-out, mean over the test samples."""
    samples: int
    samples_per_second: dict[str, float]
    seconds: float
    """From the start of the round's first attempt."""
    wire_bytes: int
    """The whole job's so far."""
    credits: float
    """The whole job's so far."""
    eta_s: float
    round_bytes: int = 0
    """Among the peers in this round, each byte counted once."""
    dense_bytes: int = 0
    """What that would have been with an exchange in 32 bits after every step."""
    exchange_seconds: float = 0.0
    """In which the peer that waited longest could take no local step because of exchanges."""
    peers: dict[str, PeerRound] = {}
    """What each of those that took part did."""


class RoundRedone(Event, frozen=True):
    """The round starts again from the last accepted weights."""

    round: int
    attempt: int
    reason: str


class ValuesLate(Event, frozen=True):
    """Some exchanges of a round went on without values that came too late: their peers add them to later ones."""

    round: int
    values: dict[str, int]
    """By peer: how many, counted once an exchange."""


class PeerLeftBehind(Event, frozen=True):
    """The others go on without the peer, which keeps its lease and takes part again when it has caught up."""

    peer: str
    round: int
    reason: str
    left: int
    """How many peers go on."""


class PeerJoined(Event, frozen=True):
    """The peer has the others' weights, and takes part from this round on."""

    peer: str
    round: int
