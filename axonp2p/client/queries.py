"""Questions to the swarm that no job asks: who is there, and what does the ledger say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from axonp2p.client.ledger.credit_history import compare_heads
from axonp2p.client.ledger.own_keys import YOU, keys_with_receipts
from axonp2p.client.storage.trust_book import KnownKey, known_of
from axonp2p.clock import Clock
from axonp2p.errors import MalformedMessage
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.ledger_client import balances
from axonp2p.ledger.receipt import MOST_BALANCES, Balances
from axonp2p.peers.capability import Capability, Need, as_map, read_capability, why_not
from axonp2p.peers.coordinates import Position, guess_between
from axonp2p.peers.rtt import PingTarget, measure
from axonp2p.peers.selection import Distance, other_version
from axonp2p.table.records import LONGEST_LIFE_S, MOST_ROWS, Row
from axonp2p.table.shared_table import SharedTable
from axonp2p.table.sightings import SeenRow, SourceAnswer
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.messages import CLOCK_TOLERANCE_S


class PeerState(StrEnum):
    """Whether a peer would take a job now."""

    FREE = "free"
    BUSY = "busy"
    """Every slot is taken."""
    REFUSING = "refusing"
    """It takes no work at present; `SeenPeer.offer.refuses` says why."""
    SILENT = "silent"
    """It was called and did not answer."""


@dataclass(frozen=True)
class SeenPeer:
    """One peer as the shared table shows it."""

    name: str
    peer: PeerId
    addresses: tuple[str, ...]
    offer: Capability
    rtt_s: float | None = None
    """Measured from here; None when it was not, or the peer did not answer."""
    state: PeerState = PeerState.FREE
    why_silent: str = ""
    """Why it did not answer."""
    age_s: float | None = None
    """How long ago it signed its row, by its own clock; None when its sequence number is no time."""
    sources: tuple[str, ...] = ()
    """The sources that had the row: `tracker HOST:PORT`, `dht`."""
    stale: tuple[str, ...] = ()
    """Sources that had only an older row."""
    estimate_s: float | None = None
    """Round trip by coordinates; None while this client or the peer has none."""
    trust: str = "new"
    """The findings of this client's own checks of its work: `new`, `3 of 10`, `12 passed`, `convicted`."""
    relay: str = ""
    """The relay through which it was measured; empty when it was called directly, or not at all."""
    other_version: str = ""
    """Why a job of the kind that was asked for passes it over: its messages are not ours. Empty when they are."""


@dataclass(frozen=True)
class Survey:
    """All that every source says, for `axon peers` and `axon doctor`."""

    peers: list[SeenPeer]
    """By name."""
    answers: list[SourceAnswer]
    """One a source, with its trouble when it said nothing."""
    silent: dict[PeerId, str]
    """Peers that the DHT named but that did not give their row, with the reason."""


@dataclass(frozen=True)
class CreditTotal:
    """The sum of receipts for one key, in credits."""

    name: str
    """As its jobs knew it here, or the first letters of its key."""
    key: PeerId
    earned: float
    owed: float
    earned_flops: int
    owed_flops: int
    receipts: int
    stands: float | None = None
    """The part of `earned` standing at the tracker asked (docs/ledger.md); None where it is not told (for a job)."""


@dataclass(frozen=True)
class Credits:
    """A tracker's balances."""

    tracker: str
    receipts: int
    """How many receipts they are the sum of."""
    balances: list[CreditTotal]
    """The largest earners first."""
    hosted: list[CreditTotal] = dataclasses.field(default_factory=list)
    """Credits that hosts signed for in this client's jobs, by the job: part of its own balance."""


async def survey_peers(
    table: SharedTable,
    need: Need,
    position: Position,
    clock: Clock,
    *,
    measured: int,
    known: Mapping[PeerId, KnownKey],
) -> Survey:
    """Peers that any source says meet `need`, by name; `known` is what earlier checks of their work found.

    The round trips to so many of them are `measured`, the nearest ones by coordinates.

    Raises `TrackerUnreachable` when no source answers.
    """
    sight = await table.survey(as_map(need), MOST_ROWS)
    distances: dict[PeerId, Distance] = {}
    here = position.told  # as it was before anything was measured: an estimate is worth what it was worth then
    if measured:
        guesses = {seen.row.peer: guess_between(here, seen.row.coordinate) or 0.0 for seen in sight.rows}
        rows = sorted((seen.row for seen in sight.rows), key=lambda row: guesses[row.peer])[:measured]
        distances = await measure({row.peer: PingTarget(row.name, row) for row in rows}, table.dials)
        for row in rows:
            if seconds := distances[row.peer].seconds:
                position.heard(row.peer, seconds, row.coordinate)
    peers = [
        dataclasses.replace(
            _seen_peer(seen, offer, distances.get(seen.row.peer), here, clock.now()),
            trust=known_of(seen.row.peer, known).in_words,
            other_version=other_version(seen.row.schema, need.kind),
        )
        for seen in sight.rows
        if (offer := _offer(seen.row)) and not why_not(offer, need)
    ]
    return Survey(sorted(peers, key=lambda peer: (peer.name, peer.peer)), sight.answers, sight.silent)


def _seen_peer(seen: SeenRow, offer: Capability, distance: Distance | None, here: bytes, now: float) -> SeenPeer:
    row = seen.row
    state = PeerState.FREE if offer.free else PeerState.BUSY
    if offer.refuses:
        state = PeerState.REFUSING
    if distance and distance.seconds is None:
        state = PeerState.SILENT
    age = now - row.sequence / 1000  # a peer counts in milliseconds of its clock, which nothing forces it to do
    return SeenPeer(
        name=row.name,
        peer=row.peer,
        addresses=tuple(row.addresses),
        offer=offer,
        rtt_s=distance.seconds if distance else None,
        state=state,
        why_silent=distance.why_not if distance else "",
        age_s=max(0.0, age) if -CLOCK_TOLERANCE_S <= age <= LONGEST_LIFE_S + CLOCK_TOLERANCE_S else None,
        sources=seen.sources,
        stale=seen.stale,
        estimate_s=guess_between(here, row.coordinate),
        relay=distance.relay if distance else "",
    )


async def ask_credits(
    trackers: TrackerLines,
    home: Path,
    own: Mapping[PeerId, str],
    names: Mapping[PeerId, str],
    job: str,
    keys: Sequence[PeerId] = (),
) -> Credits:
    """The balances of everyone in `job`, or of `keys`, or of this client and the peers in `names`.

    `own` are this client's keys, its own first: unless they are asked for one by one, they are added up.
    """

    async def ask(caller: HttpCaller) -> Balances:
        wanted = [] if job else list(keys or [*await keys_with_receipts(caller, [*own]), *sorted(names)])
        return await balances(caller, wanted[:MOST_BALANCES], job)

    caller, answer = await trackers.first(ask)
    await compare_heads(caller, home)
    known = {**names, **own}
    found = [
        CreditTotal(
            name=known.get(balance.key, short(balance.key)),
            key=balance.key,
            earned=credits_of(balance.earned_flops),
            owed=credits_of(balance.owed_flops),
            earned_flops=balance.earned_flops,
            owed_flops=balance.owed_flops,
            receipts=balance.receipts,
            stands=None if job else credits_of(int(balance.stands)),
        )
        for balance in answer.balances
    ]
    if keys:
        return Credits(caller.called, answer.receipts, found)
    mine = [one for one in found if one.key in own]
    others = [one for one in found if one.key not in own]
    shown = [*others, _added(next(iter(own)), mine)] if mine else others
    return Credits(
        tracker=caller.called,
        receipts=answer.receipts,
        balances=sorted(shown, key=lambda one: (-one.earned_flops, -one.owed_flops, one.key)),
        hosted=[one for one in mine if one.name != YOU],
    )


def _added(client: PeerId, mine: Sequence[CreditTotal]) -> CreditTotal:
    earned, owed = sum(one.earned_flops for one in mine), sum(one.owed_flops for one in mine)
    return CreditTotal(
        name=YOU,
        key=client,
        earned=credits_of(earned),
        owed=credits_of(owed),
        earned_flops=earned,
        owed_flops=owed,
        receipts=sum(one.receipts for one in mine),
        stands=sum(told) if (told := [one.stands for one in mine if one.stands is not None]) else None,
    )


def _offer(row: Row) -> Capability | None:
    try:
        return read_capability(row.capability) if row.capability else None
    except MalformedMessage:
        return None
