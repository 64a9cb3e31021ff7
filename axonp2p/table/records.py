"""Rows: what a peer publishes of itself, and the rules by which any holder keeps or drops one."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from axonp2p.errors import BadSignature, MalformedMessage, StaleRow
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.transport.messages import CLOCK_TOLERANCE_S, FINGERPRINT, HOST, PORT, Address, Fingerprint, Relays
from axonp2p.wire.codec import Message, decode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD, Signable, Signed, open_signed
from axonp2p.wire.quantities import Count, IpText, PlainMap, UnixMoment, UnixTime
from axonp2p.wire.schema import Schema

NUMBER_AHEAD_S = 120
"""A row's number is its peer's time in milliseconds, and may be so many seconds ahead of another clock."""
LONGEST_LIFE_S = 2 * 3600
"""No row may promise to be true for longer than this, in seconds."""


Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
TrackerAddress = Annotated[
    str,
    msgspec.Meta(max_length=330, pattern=rf"^https://{HOST}:{PORT}(#{FINGERPRINT})?\Z"),
]
"""As `axon-tracker run` prints it: https://HOST:PORT#FINGERPRINT."""
Coordinate = Annotated[bytes, msgspec.Meta(max_length=12)]
"""`peers.coordinates`: six half-precision floats (four dimensions, height, error), or nothing when it is unknown."""


class Row(Signable, frozen=True):
    """One peer, as its own key describes it."""

    PURPOSE: ClassVar[str] = "axon/row/1"
    LIMIT: ClassVar[int] = 1024

    peer: PeerId
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
    """The name that people see; not unique."""
    sequence: Count
    """Higher than in every row before."""
    addresses: Annotated[list[Address], msgspec.Meta(max_length=4)]
    certificate: Fingerprint
    expires: UnixTime
    """Unix time in seconds."""
    capability: PlainMap | None
    """`peers.capability.Capability` as a map; None withdraws the peer."""
    dht: Port = 0
    """UDP port of its DHT node, on the hosts in `addresses`; 0 when it has none that others can reach."""
    issues_tokens: bool = False
    """Whether it signs tokens for itself (POST /v1/reserve at the peer), for when no tracker lives."""
    coordinate: Coordinate = b""
    """Its network coordinate, if it knows it."""
    trackers: Annotated[list[TrackerAddress], msgspec.Meta(max_length=2)] = []
    """Trackers that have the row: who reads it may learn of them."""
    dialable: bool | None = None
    """Whether somebody who was asked to could dial it at `addresses`; None while nobody has tried."""
    relays: Relays = []
    """The relays that hold a connection of it, and carry callers to it."""
    carries: bool = False
    """Whether it is a relay for others."""
    schema: Schema = ""
    """Which messages of a job it speaks (`wire.schema`): a client that speaks others does not hire it."""


def open_own_row(signed: Signed[Row]) -> Row:
    """The row in an envelope when its own peer signed it, at whatever time.

    Raises `BadSignature` (also when another key signed it) and what `open_signed` raises.
    """
    row = open_signed(signed, Row)
    if row.peer != signed.signer:
        raise BadSignature(f"a row of {short(row.peer)} was signed by {short(signed.signer)}")
    return row


def decode_own_row(data: bytes) -> Row:
    """The row in the bytes of an envelope, as `open_own_row`. Raises also `MessageTooLarge` and `MalformedMessage`."""
    signed: Signed[Row] = decode(data, Signed[Row], Row.LIMIT + ENVELOPE_OVERHEAD)
    return open_own_row(signed)


def open_row(signed: Signed[Row], now: float) -> Row:
    """The row in an envelope when it is to be believed at `now`.

    Raises what `open_own_row` raises, `StaleRow` when it has expired and `MalformedMessage` when it claims to live too
    long.
    """
    row = open_own_row(signed)
    if row.expires <= now - CLOCK_TOLERANCE_S:
        raise StaleRow(f"the row of {short(row.peer)} has expired")
    if row.expires > now + LONGEST_LIFE_S + CLOCK_TOLERANCE_S:
        raise MalformedMessage(f"a row may be valid for at most {LONGEST_LIFE_S} s")
    return row


LEAST_AGAIN_S, MOST_AGAIN_S = 60.0, 1200.0
"""How often a tracker may want a row again: at most, and at least, so often."""
LEAST_PING_S = 4.0


class Announced(Message, frozen=True):
    """A tracker's answer to an announce: it is stored durably."""

    tracker: PeerId
    """The tracker's id."""
    again_in: Annotated[float, msgspec.Meta(ge=LEAST_AGAIN_S, le=MOST_AGAIN_S)]
    """Seconds until the row should be announced again; it may be valid for twice that."""
    seen_from: IpText
    """The IP address that the announce came from, as the tracker saw it."""
    time: UnixMoment
    """The tracker's Unix time in seconds, so that a peer may notice a wrong clock."""
    reached: bool | None = None
    """Whether the tracker could call the peer at an address of its row; None while it has not tried."""
    ping_in: Annotated[float, msgspec.Meta(ge=LEAST_PING_S, le=MOST_AGAIN_S)] | None = None
    """Seconds between two GET /v1/ping with which the peer may look whether this tracker lives; None: it shall not."""


QUERY_LIMIT = 4096
ROWS_LIMIT = 256 * 1024
MOST_ROWS = 200


class Query(Message, frozen=True):
    """Which peers meet a need? `need` is a `peers.capability.Need` as a map."""

    need: PlainMap
    """A `Need`."""
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] = 50
    """How many rows at the most."""
    near: Coordinate = b""
    """Where the asker stands: the nearest by coordinate come first then; without it the sample is random."""


class Rows(Message, frozen=True):
    """A random sample of the fitting rows, and how many fit and live in all."""

    rows: Annotated[list[Signed[Row]], msgspec.Meta(max_length=MOST_ROWS)]
    """At most as many as asked for, each as its peer signed it."""
    fitting: Count
    """Living peers that meet the need."""
    alive: Count
    """Living peers."""


class TrackerRow(Signable, frozen=True):
    """One tracker, as its own key describes it: how trackers, peers and clients learn of others."""

    PURPOSE: ClassVar[str] = "axon/tracker-row/1"
    LIMIT: ClassVar[int] = 768

    tracker: PeerId
    """The tracker's id."""
    address: TrackerAddress
    """Where others reach it."""
    sequence: Count
    """Higher than in every row before."""
    expires: UnixTime
    """Unix time in seconds."""
    database: Annotated[str, msgspec.Meta(min_length=32, max_length=32, pattern=r"^[0-9a-f]+\Z")]
    """Names the database: a tracker that lost its own has another one, and everything has to be told to it again."""


MOST_TRACKERS = 16
"""How many other trackers anyone remembers."""
MOST_VOUCHED = 16
"""How many trackers one operator vouches for."""


class VouchedTracker(Message, frozen=True):
    """One tracker that an operator vouches for."""

    tracker: PeerId
    """Its id, as it proved it behind that address."""
    address: TrackerAddress
    """Where it is, with its fingerprint."""


class Vouching(Signable, frozen=True):
    """A tracker's list of the trackers that its operator vouches for. Programs whose settings name this tracker
    trust them as well; lists of trackers that are only vouched for count nothing."""

    PURPOSE: ClassVar[str] = "axon/vouching/1"
    LIMIT: ClassVar[int] = 8192

    tracker: PeerId
    """The tracker that vouches."""
    number: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    """When it was signed, Unix milliseconds; a list takes the place of those with lower numbers."""
    expires: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    """Unix time in seconds; seven days after it was signed, at the most."""
    trackers: Annotated[list[VouchedTracker], msgspec.Meta(max_length=MOST_VOUCHED)]
    """All of them: one that is not named any more is not vouched for any more."""


TRACKERS_LIMIT = MOST_TRACKERS * 1100 + Vouching.LIMIT + ENVELOPE_OVERHEAD


class KnownTrackers(Message, frozen=True):
    """A tracker's answer to GET /v1/trackers: itself and those that it is in touch with."""

    trackers: Annotated[list[Signed[TrackerRow]], msgspec.Meta(max_length=MOST_TRACKERS)]
    """Each as it signed itself."""
    vouching: Signed[Vouching] | None = None
    """Those that the answering tracker's operator vouches for."""


MOST_CONTACTS = 20
CONTACTS_LIMIT = 8192


class Contacts(Message, frozen=True):
    """A tracker's answer to GET /v1/contacts: where living DHT nodes are, from different networks where it can."""

    contacts: Annotated[list[Address], msgspec.Meta(max_length=MOST_CONTACTS)]
    """HOST:PORT, UDP."""


class Report(Signable, frozen=True):
    """Somebody could not reach a peer that the table shows. The tracker looks for itself before it believes it."""

    PURPOSE: ClassVar[str] = "axon/report/1"
    LIMIT: ClassVar[int] = 512

    peer: PeerId
    """The peer that did not answer."""
    time: UnixTime
    """When it was signed, Unix seconds; at most 30 s off."""


class ReportHeard(Message, frozen=True):
    """A tracker's answer to a report."""

    checking: bool
    """Whether it looks for itself now; no when it knows already, or does not believe this reporter any more."""
