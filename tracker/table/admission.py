"""The rules by which a tracker takes or refuses announces, reservations and receipts (pure): each in one place.

A refusal is an `AxonError` whose message names the one reason. Nothing here stores anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from axonp2p.errors import Busy, ClockWrong, MalformedMessage, Refused, StaleRow, TooOften
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.receipt import Receipt, counts_instead
from axonp2p.peers.capability import Capability
from axonp2p.reservation.token import USED_WITHIN_S, ReserveRequest
from axonp2p.table.records import LONGEST_LIFE_S, NUMBER_AHEAD_S, Row, open_own_row
from axonp2p.table.slots import supersedes
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import Signed

MOST_KNOWN_PEERS = 1_500_000
"""Rows in the table, withdrawn and just expired ones included."""
MOST_RESERVATIONS_OF_ONE = 2000
"""Tokens that are valid at once and were given to one source (an IPv4 address or an IPv6 /56) ..."""
MOST_RESERVATIONS_OF_KEY = 1000
"""... and to one key."""
MOST_UNUSED_PEERS_OF_ONE = 4096
"""Peers in tokens of the last `USED_WITHIN_S` under which no receipt has come, of one source ..."""
MOST_UNUSED_PEERS_OF_KEY = 1024
"""... and of one key: sixteen of the largest jobs that begin at once."""
MOST_UNUSED_KEPT = 200_000
"""Tokens without a receipt that are remembered, each at most 10 KB; the oldest are forgotten first."""


def open_announced(signed: Signed[Row], now: float) -> Row:
    """The row that a peer announces, when it is to be taken at `now`.

    Unlike a row that somebody passed on, it was signed just now: one with other times tells that two clocks differ.
    Raises `ClockWrong`, `MalformedMessage` when it claims to live too long, and what `open_own_row` raises.
    """
    row = open_own_row(signed)
    signed_at = row.sequence / 1000
    is_time = row.expires - LONGEST_LIFE_S <= signed_at <= row.expires
    if row.expires <= now - CLOCK_TOLERANCE_S:
        off = (signed_at if is_time else row.expires) - now
        raise _clock_wrong(f"the row had expired {now - row.expires:.0f} s ago when it came", off, now)
    if row.expires > now + LONGEST_LIFE_S + CLOCK_TOLERANCE_S and not is_time:
        raise MalformedMessage(f"a row may be valid for at most {LONGEST_LIFE_S} s")
    if signed_at > now + NUMBER_AHEAD_S and signed_at > row.expires:
        raise ClockWrong(
            f"the row's number is of a time {signed_at - now:.0f} s in the future",
            cause="the peer's clock was ahead once, and its numbers only grow",
            fix="delete the file `sequence` in the home folder of axon-peer and start it again",
        )
    if row.expires > now + LONGEST_LIFE_S + CLOCK_TOLERANCE_S or signed_at > now + NUMBER_AHEAD_S:
        raise _clock_wrong(f"the row was signed {signed_at - now:.0f} s in the future", signed_at - now, now)
    return row


@dataclass(frozen=True)
class KnownRow:
    """The stored record of a peer: the number of its row and the exact bytes that it signed."""

    sequence: int
    payload: bytes


def is_news(row: Row, payload: bytes, known: KnownRow | None) -> bool:
    """Whether an announce must be stored: no when it is stored already. Raises `StaleRow`."""
    if known is None or supersedes(row.sequence, payload, known.sequence, known.payload):
        return True
    if payload == known.payload:
        return False
    raise StaleRow(
        f"row {row.sequence} of {short(row.peer)} is not newer than row {known.sequence}, which is known here",
        fix="announce with a higher number; do two daemons run with one key?",
    )


def check_room(peers: int, *, passed_on: bool = False) -> None:
    """Raise `Busy` when one more peer would be too many. A fifth is kept for those that announce themselves here."""
    if peers >= MOST_KNOWN_PEERS - (MOST_KNOWN_PEERS // 5 if passed_on else 0):
        raise Busy(f"this tracker's table is full ({MOST_KNOWN_PEERS} peers)", fix="announce to another tracker")


def check_request_time(request: ReserveRequest, now: float) -> None:
    """Raise `ClockWrong` when a request was not signed just now, so that an old one cannot be used again."""
    check_signed_now("request", request.time, now)


def check_signed_now(what: str, signed_at: float, now: float) -> None:
    """Raise `ClockWrong` unless `what` was signed just now, give or take what clocks may differ."""
    off = signed_at - now
    if abs(off) > CLOCK_TOLERANCE_S:
        raise _clock_wrong(f"the {what} was signed {abs(off):.0f} s {'in the future' if off > 0 else 'ago'}", off, now)


def _clock_wrong(message: str, off: float, now: float) -> ClockWrong:
    """By the sender's clock it is `off` seconds later than `now`, the tracker's Unix time."""
    side = "ahead of" if off > 0 else "behind"
    here = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return ClockWrong(
        message,
        cause=f"the clock of who signed it is {abs(off):.0f} s {side} this tracker's, which says {here} UTC",
        fix="set the clock that is wrong, mostly the sender's: timedatectl set-ntp true",
    )


def check_peers(request: ReserveRequest, offer_of: Callable[[PeerId], Capability | None]) -> None:
    """Raise `Refused`, naming each peer that cannot be reserved. `offer_of` gives what a living peer offers."""
    if len(set(request.peers)) != len(request.peers):
        raise Refused("the request names a peer twice")
    problems = [
        f"{short(peer)} {problem}"
        for peer in request.peers
        if (problem := _why_not_reservable(offer_of(peer), request.kinds))
    ]
    if problems:
        raise Refused(
            f"cannot reserve {len(problems)} of {len(request.peers)} peers: {'; '.join(problems)}",
            fix="ask the table again and reserve other peers",
        )


def _why_not_reservable(offer: Capability | None, kinds: list[str]) -> str:
    if offer is None:
        return "is not announced here"
    if offer.refuses:
        return f"takes no work: {offer.refuses}"
    missing = [kind for kind in kinds if kind not in offer.kinds]
    return f"does not take {', '.join(missing)} jobs" if missing else ""


def wish_of(request: ReserveRequest) -> bytes:
    """The hash by which two requests with one UUID are the same: of everything but when they were signed."""
    return hashlib.sha256(encode(msgspec.structs.replace(request, time=0))).digest()


@dataclass(frozen=True)
class IssuedToken:
    """The stored record of a reservation."""

    client: PeerId
    wish: bytes
    expires: int


def check_same_wish(issued: IssuedToken, client: PeerId, wish: bytes, now: float) -> None:
    """Raise `Refused` unless a request for a UUID that is in use is the very one that got it."""
    if (issued.client, issued.wish) != (client, wish):
        raise Refused("that UUID is in use for another reservation", fix="choose a new random UUID")
    if issued.expires <= now:
        raise Refused("that reservation has ended", fix="reserve again with a new UUID")


@dataclass(frozen=True)
class Holding:
    """The tokens and peers that one source, or one key, holds at this tracker."""

    reservations: int
    """Tokens that are valid now."""
    unused_peers: int
    """Peers in those of late under which no receipt has come."""


def check_reservations(peers: int, of_source: Holding, of_key: Holding) -> None:
    """Raise `TooOften` when a source or a key would hold too much with a reservation of so many peers more."""
    for whose, held, most, most_peers in (
        ("your address holds", of_source, MOST_RESERVATIONS_OF_ONE, MOST_UNUSED_PEERS_OF_ONE),
        ("your key holds", of_key, MOST_RESERVATIONS_OF_KEY, MOST_UNUSED_PEERS_OF_KEY),
    ):
        if held.reservations >= most:
            fix = "wait until some have expired"
            raise TooOften(f"{whose} {held.reservations} reservations", fix=fix, wait_s=60.0)
        if held.unused_peers + peers > most_peers:
            raise TooOften(
                f"{whose} {held.unused_peers} peers reserved of late, for which no work is known",
                fix=f"use them, or wait: after {USED_WITHIN_S // 60} minutes they count no more",
                wait_s=60.0,
            )


@dataclass(frozen=True)
class PromisedPeers:
    """The client and the peers that a reservation is about."""

    client: PeerId
    peers: frozenset[PeerId]


def is_new_receipt(receipt: Receipt, payload: bytes, promise: PromisedPeers, known: bytes | None) -> bool:
    """Whether a receipt that both signed must be stored: no when it is. Raises `Refused`.

    `known` is what counts here under its reservation, peer and number. Numbers may come in any order, with gaps: each
    side hands in its own copies, and some wait for a tracker that is away.
    """
    if receipt.client != promise.client:
        raise Refused("its reservation belongs to another client")
    if receipt.peer not in promise.peers:
        raise Refused("its peer is not in the reservation")
    if known is None or known == payload:
        return known is None
    if not counts_instead(payload, known):
        raise Refused(f"another receipt has number {receipt.number} of this reservation and peer")
    return True
