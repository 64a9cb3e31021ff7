"""The events of a job of this kind: what a person may see of its calls."""

from __future__ import annotations

from typing import Annotated

import msgspec

from axonp2p.client.events.event import Event
from axonp2p.kinds.map.messages import MOST_CALLS
from axonp2p.wire.json_form import ready_to_decode
from axonp2p.wire.quantities import Count, Number, PlainText


class ChunkDone(Event, frozen=True):
    """Calls of a chunk have their results on this disk."""

    chunk: Count
    """Its number in the job."""
    peer: PlainText
    calls: Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS)]
    """How many results it brought that count."""
    first: Count
    """The item of the first of its calls."""
    seconds: Number
    """From the begin of its first call to the end of its last one, by the worker's word."""
    done: Count
    """How many items have their result now, failed ones too."""
    items: Count
    """Of how many; a program that calls may add more."""
    failed: Count = 0
    """How many of `done` are errors."""
    errors: Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS)] = 0
    """How many of its own results are."""
    awaited: Count = 0
    """How many items wait for another opinion."""


class OpinionAwaited(Event, frozen=True):
    """Results of a peer do not count yet: another peer makes the same calls, and must find the same."""

    peer: PlainText
    """The peer whose results they are."""
    calls: Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS)]
    """How many."""
    first: Count
    """The item of the first of them."""
    needed: Count
    """How many peers must find the same of each."""
    awaited: Count
    """How many items of the job wait for another opinion now."""
    seconds: Number = 0.0
    """How long its calls took, as far as the client can tell."""


class PeerOutvoted(Event, frozen=True):
    """Several peers found the same, and this one something else: it is not paid for that."""

    peer: PlainText
    others: Annotated[list[PlainText], msgspec.Meta(max_length=16)]
    """Those that agree."""
    calls: Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS)]
    """Of how many calls."""
    first: Count
    """The item of the first of them."""


class ResultsDoubted(Event, frozen=True):
    """Results that nobody but a peer that was outvoted gave."""

    peer: PlainText
    again: Count
    """So many count no more: other peers make these calls."""
    taken: Count = 0
    """So many the program had already: they may be wrong."""
    items: Annotated[list[Count], msgspec.Meta(max_length=16)] = []
    """The first of either."""


class ChunkCopied(Event, frozen=True):
    """Calls that take too long where they are were begun at a second peer: the first results count."""

    chunk: Count
    """Its number in the job."""
    peer: PlainText
    slow_peer: PlainText
    """Where they take too long."""
    calls: Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS)]
    """How many have no result."""
    first: Count
    """The item of the first of these."""
    seconds: Number = 0.0
    """How long the slow peer has been at them without a result."""


class ChunkCrashed(Event, frozen=True):
    """The process of a chunk ended in the middle of a call; its other calls are made again."""

    chunk: Count
    """Its number in the job."""
    item: Count
    """That of the call."""
    peer: PlainText
    reason: PlainText


class CallFailed(Event, frozen=True):
    """The result of an item is an error: its last attempt is spent. Told of the first items only."""

    item: Count
    """Its number, from 0."""
    peer: PlainText
    kind: PlainText
    """The class of the exception that the function raised, or "Crashed"."""
    message: PlainText


class PeerSetAside(Event, frozen=True):
    """A peer gets no more calls of this job: it failed in those that others could do, or others found other results."""

    peer: PlainText
    items: Annotated[list[Count], msgspec.Meta(max_length=16)]
    """Those in which it was seen."""
    reason: PlainText = ""
    """Why."""


class CallsDone(Event, frozen=True):
    """All results of a job, or those that it came to."""

    job: PlainText
    folder: PlainText
    items: Count
    """How many there are."""
    done: Count
    """How many of them have a result."""
    failed: Count
    """How many results are errors."""
    seconds: Number
    """Of the last life of the job."""
    copied: Count = 0
    """Chunks of this life that were begun twice."""


MapEvent = (
    ChunkDone
    | OpinionAwaited
    | PeerOutvoted
    | ResultsDoubted
    | ChunkCopied
    | ChunkCrashed
    | CallFailed
    | PeerSetAside
    | CallsDone
)

ready_to_decode(MapEvent)
