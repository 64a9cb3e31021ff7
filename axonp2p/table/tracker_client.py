"""A tracker's table, asked from outside. Its answers are believed only as far as each row's own signature goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from axonp2p.errors import PeerMisbehaved, Refused, TrackerUnreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.table.records import (
    CONTACTS_LIMIT,
    MOST_ROWS,
    ROWS_LIMIT,
    TRACKERS_LIMIT,
    Announced,
    Contacts,
    KnownTrackers,
    Query,
    Report,
    ReportHeard,
    Row,
    Rows,
    TrackerRow,
    Vouching,
    open_row,
)
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.envelope import Signed, open_signed, sign

log = get_logger(__name__)

ANNOUNCE_PATH = "/v1/announce"
QUERY_PATH = "/v1/query"
REPORT_PATH = "/v1/report"
TRACKERS_PATH = "/v1/trackers"
CONTACTS_PATH = "/v1/contacts"
ANNOUNCED_LIMIT = 1024


@dataclass(frozen=True)
class RowsFound:
    """The answer of a tracker to a query, without what is not to be believed."""

    rows: list[Row]
    """In the tracker's order, one a peer, none withdrawn."""
    fitting: int
    """How many peers meet the need, by the tracker's word."""
    alive: int
    """How many peers it knows, by its word."""
    dropped: int
    """How many rows were forged, expired or malformed."""


async def announce(caller: HttpCaller, row: Signed[Row]) -> Announced:
    """Give our row to a tracker, which holds it on disk when this returns. Raises what `HttpCaller.call` raises."""
    return await caller.call(ANNOUNCE_PATH, row, Announced, ANNOUNCED_LIMIT)


async def query(
    caller: HttpCaller, need: dict[str, Any], count: int, *, now: float, near: bytes = b"", timeout_s: float = 10
) -> RowsFound:
    """At most `count` (and 200) peers that meet `need`, a `peers.capability.Need` as a map. `now` is Unix time.

    With the coordinate `near` (`peers.coordinates`) the nearest come first, else the sample is random. Whether an
    offer truly meets the need is for the caller to check. Raises what `HttpCaller.call` raises.
    """
    wanted = min(count, MOST_ROWS)
    question = Query(need=need, count=wanted, near=near)
    answer = await caller.call(QUERY_PATH, question, Rows, ROWS_LIMIT, timeout_s=timeout_s)
    rows: dict[PeerId, Row] = {}
    dropped = 0
    for signed in answer.rows[:wanted]:
        try:
            row = open_row(signed, now)
        except (PeerMisbehaved, Refused) as error:
            dropped += 1
            log.debug("row dropped", tracker=caller.called, reason=error.message)
            continue
        known = rows.get(row.peer)
        if known is None or row.sequence > known.sequence:
            rows[row.peer] = row
    offered = [row for row in rows.values() if row.capability is not None]
    return RowsFound(offered, answer.fitting, answer.alive, dropped)


async def report(caller: HttpCaller, key: PrivateKey, peer: PeerId, *, now: float) -> ReportHeard:
    """Tell a tracker that a peer which it shows did not answer. Raises what `HttpCaller.call` raises."""
    said = sign(key, Report(peer=peer, time=int(now)))
    return await caller.call(REPORT_PATH, said, ReportHeard, ANNOUNCED_LIMIT)


@dataclass(frozen=True)
class TrackersTold:
    """The facts that a tracker tells of trackers."""

    own: PeerId
    """Its own id, by its signed row; empty when it shows none."""
    rows: list[TrackerRow]
    """Those that it knows, itself too, each by its own signed word."""
    vouching: Signed[Vouching] | None
    """The trackers that its operator vouches for; not opened yet."""


async def known_trackers(caller: HttpCaller, *, now: float) -> TrackersTold:
    """Ask a tracker for the trackers that it knows. Raises what `HttpCaller.call` raises."""
    answer = await caller.call(TRACKERS_PATH, None, KnownTrackers, TRACKERS_LIMIT)
    rows, own = [], ""
    for place, signed in enumerate(answer.trackers):
        try:
            row = open_signed(signed, TrackerRow)
        except PeerMisbehaved as error:
            log.debug("tracker's row dropped", tracker=caller.called, reason=error.message)
            continue
        if row.tracker == signed.signer and row.expires > now:
            rows.append(row)
            own = own or (row.tracker if place == 0 else "")
    return TrackersTold(own, rows, answer.vouching)


async def dht_contacts(caller: HttpCaller) -> list[str]:
    """HOST:PORT (UDP) of living DHT nodes that a tracker knows. Raises what `HttpCaller.call` raises."""
    return (await caller.call(CONTACTS_PATH, None, Contacts, CONTACTS_LIMIT)).contacts


def line_to(tracker: PinnedAddress, policy: DialPolicy | None = None) -> HttpCaller:
    """A line to a tracker, which people know by its address; with a `policy` when a stranger named it."""
    called = f"tracker {tracker.host_port}"
    return HttpCaller(tracker, called=called, policy=policy, unreachable=TrackerUnreachable)
