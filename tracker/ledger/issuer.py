"""Tokens: signed with the tracker's key, stored before they are given out, given again to who asks the same again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import sqlite_utils

from axonp2p.errors import AxonError, Refused
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.receipt import Balance
from axonp2p.logs import get_logger
from axonp2p.reservation.token import USED_WITHIN_S, ReserveRequest, Token
from axonp2p.transport.address import plain_address, source_of
from axonp2p.wire.envelope import Signed, open_signed, sign
from tracker.ledger.owing import ANY_AMOUNT, MOST_PROMISED, RECEIPTS_COME_WITHIN_S, Owing, PeerPromise, promises_of
from tracker.storage.database import Database
from tracker.table.admission import (
    MOST_UNUSED_KEPT,
    Holding,
    IssuedToken,
    check_peers,
    check_request_time,
    check_reservations,
    check_same_wish,
    wish_of,
)
from tracker.table.table_index import TableIndex

log = get_logger(__name__)

KEPT_AFTER_END_S = 7 * 24 * 3600
"""How long after its end a reservation is remembered for late receipts; one with receipts is kept for good."""


@dataclass(frozen=True)
class _Wished:
    """A token that was asked for, not given yet."""

    token: Token
    wish: bytes
    promised: list[PeerPromise]
    trouble: AxonError | None
    """Why it cannot be given, but to who has it already."""


class Issuer:
    """Reservations of peers that the table knows."""

    def __init__(
        self,
        key: PrivateKey,
        database: Database,
        index: TableIndex,
        owing: Owing = ANY_AMOUNT,
        balance_of: Callable[[PeerId], Balance] = lambda client: Balance(key=client),
    ) -> None:
        """`balance_of` tells what a client earned, as far as it stands, and owes, for the rule `owing`."""
        self._owing = owing
        self._balance_of = balance_of
        self._key = key
        self._database = database
        self._index = index

    async def issue(self, signed: Signed[ReserveRequest], address: str, now: float) -> Signed[Token]:
        """The token for a request that came from this IP address at `now` (Unix time); stored when this returns.

        Raises `Refused` with the reason, `Busy`, and what `open_signed` raises.
        """
        request = open_signed(signed, ReserveRequest)
        check_request_time(request, now)
        # A reason against a new token does not matter to a client that has one already and asks again.
        offers = {peer: self._index.offer_of(peer, now) for peer in request.peers}
        try:
            check_peers(request, offers.get)
            trouble: AxonError | None = None
        except Refused as error:
            trouble = error
        token = Token(
            uuid=request.uuid,
            issuer=self._key.peer_id,
            client=signed.signer,
            client_address=plain_address(address),
            peers=request.peers,
            kinds=request.kinds,
            not_before=int(now),
            expires=int(now) + request.seconds,
        )
        wished = _Wished(token, wish_of(request), promises_of(token, offers.get), trouble)
        return await self._database.write(lambda database: self._store(database, wished, now))

    def _store(self, database: sqlite_utils.Database, wished: _Wished, now: float) -> Signed[Token]:
        token = wished.token
        found = database.execute(
            "SELECT client, wish, expires, issuer, payload, signature FROM tokens WHERE uuid = ?", [token.uuid]
        ).fetchone()
        if found:
            check_same_wish(IssuedToken(*found[:3]), token.client, wished.wish, now)
            return Signed(signer=found[3], payload=found[4], signature=found[5])
        if wished.trouble is not None:
            raise wished.trouble
        source = source_of(token.client_address)
        of_source, of_key = (_held(database, *one, now) for one in (("source", source), ("client", token.client)))
        check_reservations(len(token.peers), of_source, of_key)
        if not self._owing.lets_owe_any(token.client):
            # Here, where one comes after the other: two at once must not both be the last that is allowed.
            promised = _promised(database, token.client, now)
            self._owing.check(self._balance_of(token.client), promised, wished.promised, now)
        signed = sign(self._key, token)
        database.execute(
            "INSERT INTO tokens"
            " (uuid, issuer, client, source, wish, issued, expires, peers, payload, signature, promised)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(token.uuid, token.issuer, token.client, source, wished.wish, int(now), token.expires),
                *(len(token.peers), signed.payload, signed.signature, msgspec.msgpack.encode(wished.promised)),
            ],
        )
        log.info("token issued", client=short(token.client), peers=len(token.peers), until=token.expires)
        return signed

    async def sweep(self, now: float) -> None:
        """Forget reservations without a receipt that ended long ago, and of those that are too many the oldest."""
        await self._database.write(lambda database: _forget(database, now))


def _forget(database: sqlite_utils.Database, now: float) -> None:
    database.execute("DELETE FROM tokens WHERE expires <= ? AND used = 0", [now - KEPT_AFTER_END_S])
    database.execute(
        "DELETE FROM tokens WHERE uuid IN"
        " (SELECT uuid FROM tokens WHERE used = 0 ORDER BY issued DESC LIMIT -1 OFFSET ?)",
        [MOST_UNUSED_KEPT],
    )


def _held(database: sqlite_utils.Database, column: str, whose: str, now: float) -> Holding:
    # The column is one of two names of our own.
    alive = f"SELECT count(*) FROM tokens WHERE {column} = ? AND expires > ?"  # noqa: S608
    unused = f"SELECT total(peers) FROM tokens WHERE {column} = ? AND issued > ? AND used = 0"  # noqa: S608
    return Holding(
        reservations=database.execute(alive, [whose, now]).fetchone()[0],
        unused_peers=int(database.execute(unused, [whose, now - USED_WITHIN_S]).fetchone()[0]),
    )


def _promised(database: sqlite_utils.Database, client: PeerId, now: float) -> list[PeerPromise]:
    """The peers that this tracker promised to a client and that may still be worked on, or could until just now.

    Of more than `MOST_PROMISED`, about so many: `Owing.check` refuses then.
    """
    found = database.execute(
        "SELECT promised FROM tokens WHERE client = ? AND expires > ? AND promised IS NOT NULL",
        [client, now - RECEIPTS_COME_WITHIN_S],
    )
    promised: list[PeerPromise] = []
    for (kept,) in found:
        promised += msgspec.msgpack.decode(kept, type=list[PeerPromise])
        if len(promised) > MOST_PROMISED:
            break
    return promised
