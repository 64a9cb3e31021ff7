"""The judgement of receipts before any signature is looked at.

A made-up receipt costs its maker two signatures. Its check costs a tracker as much, and where somebody has thousands
checked, everybody else waits. So a claim is read first: a receipt of a machine that nobody announced here, on a
reservation that no known tracker gave, would be refused whoever signed it, and is refused unchecked. A receipt read so
is believed of nobody: no more than its own refusal follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import PeerMisbehaved
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.receipt import DoublySigned, Receipt
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.ledger.foreign_tokens import TOKEN_BYTES
from tracker.ledger.intake import TrackerTrust, why_unknown
from tracker.ledger.known_reservations import why_no_promise

Reserved = tuple[str, PeerId]
"""A reservation's UUID, and its client."""


@dataclass(frozen=True)
class Groundless:
    """A receipt for which nothing can speak but a reservation that is stored here."""

    reserved: Reserved
    reason: str
    """The reason that its sender is told when no such reservation is stored."""


def without_ground(
    receipts: Sequence[DoublySigned], tokens: Sequence[bytes], trust: TrackerTrust
) -> dict[int, Groundless]:
    """Those receipts by index."""
    claimed = list(_claimed(tokens))
    issuers = {token.uuid: token.issuer for token in claimed}
    given = {token.uuid for token in claimed if trust.vouches(token.issuer) or trust.known(token.issuer)}
    found = {}
    for index, doubly in enumerate(receipts):
        with suppress(PeerMisbehaved):  # one that cannot be read is refused with its reason when it is opened
            claim = decode_as(doubly.receipt.payload, Receipt, Receipt.LIMIT)
            if claim.reservation not in given and not trust.machine(claim.peer).known:
                issuer = issuers.get(claim.reservation)
                reason = why_no_promise() if issuer is None else why_unknown(issuer, claim.peer)
                found[index] = Groundless((claim.reservation, claim.client), reason)
    return found


def stored_among(database: sqlite_utils.Database, wanted: Iterable[Reserved]) -> set[Reserved]:
    """Which of these reservations there are here."""
    statement = (
        "SELECT 1 FROM tokens WHERE uuid = ?1 AND client = ?2"
        " UNION ALL SELECT 1 FROM foreign_tokens WHERE uuid = ?1 AND client = ?2 LIMIT 1"
    )
    return {one for one in wanted if database.execute(statement, list(one)).fetchone()}


def _claimed(tokens: Iterable[bytes]) -> Iterable[Token]:
    for data in tokens:
        with suppress(PeerMisbehaved):
            signed: Signed[Token] = decode_as(data, Signed[Token], TOKEN_BYTES)
            yield decode_as(signed.payload, Token, Token.LIMIT)
