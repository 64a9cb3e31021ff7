"""The reservations that something handed in stands on, by whoever gave them: stored here, or come along with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import sqlite_utils

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.peers.capability import Capability
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.ledger.foreign_tokens import open_foreign_token
from tracker.ledger.intake import UNMEASURED_GFLOPS, most_flops
from tracker.ledger.owing import PeerPromise
from tracker.table.admission import PromisedPeers

log = get_logger(__name__)

MOST_OF_ONE_NAME = 16
"""Tokens of one UUID and client that are looked at: only its client can have more than one be of use."""


@dataclass(frozen=True)
class KnownReservation:
    """A reservation; `signed` when its token is not stored here yet."""

    token: Token
    signed: Signed[Token] | None = None
    machines: Mapping[PeerId, PeerPromise] = field(default_factory=dict)
    """Its peers as they were when this tracker reserved them; empty for a reservation of somebody else."""

    @property
    def promise(self) -> PromisedPeers:
        """The client and the peers that it is about."""
        return PromisedPeers(self.token.client, frozenset(self.token.peers))

    def is_about(self, client: PeerId, peer: PeerId) -> bool:
        """Whether it is this client's, of this peer."""
        return client == self.token.client and peer in self.token.peers

    def room(self, peer: PeerId, offer: Capability | None) -> int:
        """FLOPs that this peer's machine may have done in it; `offer` is what its row says now, if there is one."""
        if (then := self.machines.get(peer)) is not None:
            return most_flops(self.token, then.gflops, then.slots)
        if offer is not None:
            return most_flops(self.token, offer.gflops or UNMEASURED_GFLOPS, offer.slots)
        return most_flops(self.token, UNMEASURED_GFLOPS, 1)


@dataclass
class Brought:
    """The tokens that came along, opened."""

    by_uuid: dict[str, list[KnownReservation]] = field(default_factory=dict)
    why_not: str = ""
    """Why one of them is not believed; empty when all are."""


def open_tokens(tokens: Iterable[bytes]) -> Brought:
    """Check their signatures, and whether who gave them had the right to."""
    brought = Brought()
    for data in tokens:
        try:
            token, signed = open_foreign_token(data)
        except (PeerMisbehaved, Refused) as error:
            brought.why_not = error.message
            continue
        brought.by_uuid.setdefault(token.uuid, []).append(KnownReservation(token, signed))
    return brought


class KnownReservations:
    """The reservations that are known while something is stored: within one transaction."""

    def __init__(self, database: sqlite_utils.Database, brought: Brought) -> None:
        self._database = database
        self._brought = brought
        self._stored: dict[tuple[str, PeerId], list[KnownReservation]] = {}

    def that_fits(self, reservation: str, client: PeerId, peer: PeerId) -> KnownReservation:
        """The reservation with this UUID: this client's of this peer, or any other that came along.

        Raises `Refused` for none.
        """
        stored = (reservation, client)
        if stored not in self._stored:
            # By client too: a stranger may have tokens of its own stored under somebody else's UUID, any number.
            self._stored[stored] = _stored_promises(self._database, reservation, client)
        reservations = [*self._stored[stored], *self._brought.by_uuid.get(reservation, [])]
        if not reservations:
            if self._database.execute("SELECT 1 FROM tokens WHERE uuid = ?", [reservation]).fetchone():
                raise Refused("its reservation belongs to another client")
            raise Refused(why_no_promise(self._brought.why_not))
        # A stranger may send a token of its own with somebody else's UUID: it must not stand in the way of the true.
        return next((one for one in reservations if one.is_about(client, peer)), reservations[0])

    def keep(self, promised: KnownReservation) -> None:
        """Something is stored that stands on it."""
        token, signed = promised.token, promised.signed
        if signed is not None:
            self._database.execute(
                "INSERT OR IGNORE INTO foreign_tokens (uuid, issuer, client, payload, signature)"
                " VALUES (?, ?, ?, ?, ?)",
                [token.uuid, token.issuer, token.client, signed.payload, signed.signature],
            )
        else:
            self._database.execute("UPDATE tokens SET used = 1 WHERE uuid = ? AND used = 0", [token.uuid])


def why_no_promise(why_no_token: str = "") -> str:
    """The reason that the sender of a receipt on an unknown reservation is told; and why a token is not believed."""
    reason = "this tracker did not give its reservation, and no token of it came along"
    return f"{reason} that can be believed: {why_no_token}" if why_no_token else reason


def _stored_promises(database: sqlite_utils.Database, reservation: str, client: PeerId) -> list[KnownReservation]:
    # Their signatures were checked, or made, before they were stored.
    found = database.execute(
        "SELECT payload, promised FROM tokens WHERE uuid = ?1 AND client = ?2"  # noqa: S608 (a number of ours)
        " UNION ALL SELECT payload, NULL FROM (SELECT payload FROM foreign_tokens"
        f" WHERE uuid = ?1 AND client = ?2 LIMIT {MOST_OF_ONE_NAME})",
        [reservation, client],
    ).fetchall()
    reservations = []
    for payload, promised in found:
        try:
            token = decode_as(payload, Token, Token.LIMIT)
            machines = msgspec.msgpack.decode(promised, type=list[PeerPromise]) if promised else []
        except (PeerMisbehaved, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.error("a stored token is damaged, and passed over", reservation=reservation, reason=str(error))
            continue
        reservations.append(KnownReservation(token, machines={one.peer: one for one in machines}))
    return reservations
