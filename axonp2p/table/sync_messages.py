"""The messages between trackers: pushes of new rows, and the questions by which one finds what it lacks.

Rows travel as their peers signed them, and are checked by whoever receives them. A tracker signs its pushes: what it
hands over counts for it, and only trackers that the receiver knows may push at all.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Row
from axonp2p.wire.codec import Message
from axonp2p.wire.envelope import Signable, Signed
from axonp2p.wire.quantities import UnixMoment

SlotNumber = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]

MOST_NEWS = 200
"""Rows in one push, short and long ones together."""
PUSHED_LIMIT = 4096


class Push(Signable, frozen=True, omit_defaults=True):
    """Rows that are new at the sender, which signs. Those that differ little from the row before travel as what has
    changed."""

    PURPOSE: ClassVar[str] = "axon/push/1"
    LIMIT: ClassVar[int] = 384 * 1024

    to: PeerId
    """The receiver's id: it cannot show this push to others as the sender's."""
    rows: Annotated[list[Signed[Row]], msgspec.Meta(max_length=MOST_NEWS)] = []
    """Whole rows."""
    renewals: Annotated[list[Annotated[bytes, msgspec.Meta(max_length=1024)]], msgspec.Meta(max_length=MOST_NEWS)] = []
    """Rows told by what has changed: slot (4 bytes) and name (8) of the row before, signature (64), changed fields;
    or by their own slot and name alone, where the peer announces to the receiver as well."""
    missed: bool = False
    """Whether earlier pushes did not arrive: the receiver asks for what it lacks then."""
    waited: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0
    """Seconds since the oldest of these rows was stored at the sender."""


class Pushed(Message, frozen=True, omit_defaults=True):
    """The answer to a push."""

    started: UnixMoment
    """When the answerer began to run, by its own clock: one that was started anew has to be told of all trackers."""
    lacking: Annotated[list[Annotated[int, msgspec.Meta(ge=0, lt=MOST_NEWS)]], msgspec.Meta(max_length=MOST_NEWS)] = []
    """Which renewals were of no use, because the row that they name is not known here: send them whole."""


GROUP = 64
"""Slots that share one digest in the first question."""
MOST_GROUPS = 24
MOST_SLOTS = GROUP * MOST_GROUPS
MOST_SLOTS_OPENED = 16
MOST_PARTS = 64
MOST_NAMES = 8192
NAME_BYTES = 48
MOST_BODIES = 200
ASKED_LIMIT = 16 * 1024
TOLD_LIMIT = 512 * 1024


class DigestsAsked(Message, tag=True, frozen=True):
    """Which slots differ from what the asker has seen or has from you already?"""

    oldest: SlotNumber
    """The first slot; they are ten seconds long and counted from 1970."""
    newest: SlotNumber
    """The last one."""
    groups: Annotated[bytes, msgspec.Meta(max_length=8 * MOST_GROUPS)]
    """For each 64 slots from `oldest` on, the XOR of their digests as the asker expects them of you; 8 bytes each."""


class DigestsTold(Message, tag=True, frozen=True):
    """The groups that differ, and all that is in them."""

    groups: Annotated[list[Annotated[int, msgspec.Meta(ge=0, lt=MOST_GROUPS)]], msgspec.Meta(max_length=MOST_GROUPS)]
    """Which of the groups asked about are not as expected."""
    slots: Annotated[bytes, msgspec.Meta(max_length=16 * MOST_SLOTS)]
    """Their slots that hold anything: number (4 bytes), digest (8), rows that still stand (4)."""
    started: UnixMoment
    """As in `Pushed`."""


class BucketsAsked(Message, tag=True, frozen=True):
    """In which parts do these slots differ?"""

    slots: Annotated[list[SlotNumber], msgspec.Meta(max_length=MOST_SLOTS_OPENED)]
    """Their numbers."""


class BucketsTold(Message, tag=True, frozen=True):
    """The digests of the 256 parts of each slot."""

    buckets: Annotated[
        list[Annotated[bytes, msgspec.Meta(min_length=1024, max_length=1024)]],
        msgspec.Meta(max_length=MOST_SLOTS_OPENED),
    ]
    """In the order asked: for each part 4 bytes, over the rows that still stand."""


class SlotPart(Message, frozen=True):
    """Some parts of one slot."""

    slot: SlotNumber
    """Its number."""
    parts: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    """One bit for each of the 256 parts, the lowest bit of the first byte first."""


class NamesAsked(Message, tag=True, frozen=True):
    """Which rows are there?"""

    slots: Annotated[list[SlotPart], msgspec.Meta(max_length=MOST_PARTS)]
    """Where to look."""


class NamesTold(Message, tag=True, frozen=True):
    """The rows that still stand in the slots asked about."""

    names: Annotated[bytes, msgspec.Meta(max_length=MOST_NAMES * NAME_BYTES)]
    """For each: the peer's key (32 bytes), the number (8), the name (8)."""
    cut: bool
    """Whether there were more than fit."""


class RowsAsked(Message, tag=True, frozen=True):
    """The newest rows of these peers, please."""

    peers: Annotated[bytes, msgspec.Meta(max_length=32 * MOST_BODIES)]
    """Their keys, 32 bytes each."""


class RowsTold(Message, tag=True, frozen=True):
    """Rows as their peers signed them; those that have expired are left out."""

    rows: Annotated[list[Signed[Row]], msgspec.Meta(max_length=MOST_BODIES)]
    """At most one for each peer."""


SyncAsked = DigestsAsked | BucketsAsked | NamesAsked | RowsAsked
SyncTold = DigestsTold | BucketsTold | NamesTold | RowsTold
