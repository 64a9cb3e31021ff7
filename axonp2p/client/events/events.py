"""The part of a job that a person may see: small frozen values, apart from logs, holding no secret.

The program draws its bar from them, `job.events()` yields them, and all but those that pass stand as lines of JSON in
the job's `events.jsonl`. Peers appear by name. Times are in seconds, sizes in bytes. Those of one kind of job alone
stand in that kind's room.
"""

from __future__ import annotations

import functools
import operator
from functools import cache
from typing import Any

import msgspec

from axonp2p.client.events.bundle_events import BundleProgress as BundleProgress
from axonp2p.client.events.bundle_events import BundleSent as BundleSent
from axonp2p.client.events.bundle_events import PackagesResolved as PackagesResolved
from axonp2p.client.events.bundle_events import PeerHelped as PeerHelped
from axonp2p.client.events.bundle_events import PieceWrong as PieceWrong
from axonp2p.client.events.event import Event as Event
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.wire.json_form import decode_json, ready_to_decode
from axonp2p.wire.quantities import Count, Number


class FileDamaged(Event, frozen=True):
    """A file of the job's folder was damaged, or not there: it is put aside, and made again from what is known else."""

    name: str
    """Of the file."""
    file: str
    """Where the damaged file is now; empty if there was none."""


class PeersAwaited(Event, frozen=True):
    """Too few peers are there for the job to go on; it keeps what it has, and looks for others."""

    there: Count
    """How many are there."""
    needed: Count
    """How many the job needs at least."""
    seconds: Number
    """For how long it does so."""
    reason: str


class PeerPaused(Event, frozen=True):
    """The peer's owner needs the machine: its worker is frozen, and later continues or is handed back."""

    peer: str
    reason: str


class PeerResumed(Event, frozen=True):
    """Its worker continues."""

    peer: str


class PeerHandedBack(Event, frozen=True):
    """The peer's owner takes the machine back. It ends the round that runs where there is time, and leaves then."""

    peer: str
    reason: str
    round: Count
    """The one that runs, from 0."""


class JobWaiting(Event, frozen=True):
    """Without these paused peers fewer than `min-peers` are left: no deadline passes until one of them continues."""

    peers: list[str]


class JobGoesOn(Event, frozen=True):
    """The job waits for no paused peer any more."""


class JobSubmitted(Event, frozen=True):
    """The job's folder is written; looking for peers begins."""

    job: str
    folder: str
    peers: Count
    """How many the job wants."""
    rounds: Count
    """How many units of work: rounds, copies."""
    bundle_bytes: Count
    """Of all files that are sent."""
    resumed_from_round: Count = 0
    """How many units are done and kept; 0 for a job that begins."""


class PeersFound(Event, frozen=True):
    """The table answered."""

    sources: list[str]
    """The sources that did: `tracker HOST:PORT`, `dht`."""
    alive: Count
    """Peers that the one among them knows that knows most."""
    fitting: Count
    """Those among them that meet the need."""
    looked_at: Count
    """How many of those are measured next."""
    hired: Count = 0
    """How many peers the job has already: this looks for the others."""
    wanted: Count = 0
    """How many it wants in all."""


class RttMeasured(Event, frozen=True):
    """Round-trip times of the candidates, before anything was acquired."""

    seconds: dict[str, Number]
    """By peer."""
    too_far: list[str]
    """Peers farther away than `max-rtt`."""
    unreachable: dict[str, str]
    """With the reason."""
    estimated: dict[str, Number] = {}
    """The same distances as coordinates predicted them, if they did; seconds."""
    relayed: dict[str, str] = {}
    """Peers that nobody can dial, with the relay through which they were measured."""


class Reserved(Event, frozen=True):
    """A token was signed for these peers."""

    reservation: str
    """Its id."""
    issuer: str
    """`tracker HOST:PORT`, or `peer NAME` when the peer signed it for itself."""
    peers: list[str]


class PeerRefused(Event, frozen=True):
    """A reserved peer said no or did not answer; another candidate is asked if there is one."""

    peer: str
    reason: str


class PeerHired(Event, frozen=True):
    """A peer gave its slot; its worker is starting."""

    peer: str
    rank: Count
    cores: Count
    memory_mb: Count


class RttsGuessed(Event, frozen=True):
    """Round-trip times among the hired peers, as their network coordinates tell: wrong by about a third."""

    seconds: dict[str, dict[str, Number]]
    """By both names; each pair is there once."""


class PeerLost(Event, frozen=True):
    """A peer is out of the job; its shards go to the others."""

    peer: str
    round: Count
    """The unit of work that was under way, from 0."""
    reason: str
    left: Count
    """How many peers go on."""


class ReceiptsMissing(Event, frozen=True):
    """Receipts that a peer did not counter-sign, or that a tracker has not taken: their credit is not in the ledger."""

    unsigned: Count
    """How many no peer has signed."""
    not_taken: Count
    """How many no tracker has taken."""
    reason: str


class JobFinished(Event, frozen=True):
    """The result is here: the weights, or the files of all copies."""

    job: str
    folder: str
    """Holds the result, its table and logs."""
    rounds: Count
    """Units of work: rounds, copies."""
    seconds: Number
    """From submit (or resume) to now."""
    wire_bytes: Count
    """Of the whole job: between client and peers, and among peers."""
    credits: dict[str, Number]
    """By peer."""
    receipts: Count
    """Receipts that a tracker holds."""
    peers: list[str]
    """Those that were there at the end."""
    lost: list[str]
    """Those that left before it."""
    loss: Number = 0.0
    """Of a training, as are `metrics`, `samples` and `first_step_s`."""
    metrics: dict[str, Number] = {}
    """Held-out, of the last round."""
    samples: Count = 0
    first_step_s: Number = 0.0
    """From submit to the first sign of training."""


class JobPaused(Event, frozen=True):
    """The client left; `axon resume` continues after `round` rounds."""

    job: str
    folder: str
    round: Count
    """How many rounds are done and kept."""
    reason: str = ""
    """Why, when it was not the client that wished it: owners took too many machines back."""


class JobCancelled(Event, frozen=True):
    """The job was ended on purpose; nothing is kept to go on from."""

    job: str


class JobEndedBadly(Event, frozen=True):
    """The job failed; `job.events()` raises the same as an error."""

    job: str
    code: str
    message: str
    cause: str
    fix: str


CommonEvent = (
    JobSubmitted
    | PeersFound
    | RttMeasured
    | Reserved
    | PeerRefused
    | PeerHired
    | RttsGuessed
    | PackagesResolved
    | BundleProgress
    | BundleSent
    | PeerHelped
    | PieceWrong
    | PeerLost
    | PeerPaused
    | PeerResumed
    | PeerHandedBack
    | JobWaiting
    | JobGoesOn
    | PeersAwaited
    | FileDamaged
    | ReceiptsMissing
    | JobFinished
    | JobPaused
    | JobCancelled
    | JobEndedBadly
)

ready_to_decode(CommonEvent)


def as_line(event: Event) -> bytes:
    """The event as one line of JSON, without the line's end."""
    return msgspec.json.encode(event)


def from_line(line: bytes) -> Event:
    """The event in a line that `as_line` wrote, of any kind of job; `msgspec.DecodeError` when it is none."""
    event: Event = decode_json(line, any_event())
    return event


@cache
def any_event() -> Any:
    """The union of all events, of every kind of job."""
    return functools.reduce(operator.or_, (load(kind.events) for kind in KINDS.values()), CommonEvent)
