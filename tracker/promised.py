"""The reservations that something handed in stands on, by whoever gave them: stored here, or come along with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import sqlite_utils

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.admission import Promise
from tracker.foreign_tokens import open_foreign_token


@dataclass(frozen=True)
class Promised:
    """A reservation; `signed` when its token is not stored here yet."""

    promise: Promise
    signed: Signed[Token] | None = None
    token: Token | None = None

    def is_about(self, client: PeerId, peer: PeerId) -> bool:
        """Whether it is this client's, of this peer."""
        return client == self.promise.client and peer in self.promise.peers


@dataclass
class Brought:
    """The tokens that came along, opened."""

    by_uuid: dict[str, list[Promised]] = field(default_factory=dict)
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
        brought.by_uuid.setdefault(token.uuid, []).append(Promised(_promise_of(token), signed, token))
    return brought


class Promises:
    """What is promised, while something is stored: within one transaction."""

    def __init__(self, database: sqlite_utils.Database, brought: Brought) -> None:
        self._database = database
        self._brought = brought
        self._stored: dict[str, list[Promised]] = {}

    def that_fits(self, reservation: str, client: PeerId, peer: PeerId) -> Promised:
        """The reservation with this UUID: this client's of this peer, or any other. Raises `Refused` for none."""
        if reservation not in self._stored:
            self._stored[reservation] = _stored_promises(self._database, reservation)
        promises = [*self._stored[reservation], *self._brought.by_uuid.get(reservation, [])]
        if not promises:
            raise Refused(_why_no_promise(self._brought.why_not))
        # A stranger may send a token of its own with somebody else's UUID: it must not stand in the way of the true.
        return next((one for one in promises if one.is_about(client, peer)), promises[0])

    def keep(self, reservation: str, promised: Promised) -> None:
        """Something is stored that stands on it."""
        token, signed = promised.token, promised.signed
        if token is not None and signed is not None:
            self._database.execute(
                "INSERT OR IGNORE INTO foreign_tokens (uuid, issuer, client, payload, signature)"
                " VALUES (?, ?, ?, ?, ?)",
                [token.uuid, token.issuer, token.client, signed.payload, signed.signature],
            )
        else:
            self._database.execute("UPDATE tokens SET used = 1 WHERE uuid = ? AND used = 0", [reservation])


def _why_no_promise(why_no_token: str) -> str:
    reason = "this tracker did not give its reservation, and no token of it came along"
    return f"{reason} that can be believed: {why_no_token}" if why_no_token else reason


def _promise_of(token: Token) -> Promise:
    return Promise(token.client, frozenset(token.peers))


def _stored_promises(database: sqlite_utils.Database, reservation: str) -> list[Promised]:
    found = database.execute(
        "SELECT payload FROM tokens WHERE uuid = ? UNION ALL SELECT payload FROM foreign_tokens WHERE uuid = ?",
        [reservation, reservation],
    )
    # Their signatures were checked, or made, before they were stored.
    return [Promised(_promise_of(decode_as(payload, Token, Token.LIMIT))) for (payload,) in found]
