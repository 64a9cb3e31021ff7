"""Receipts: checked, stored once, and summed up. The sums in memory are a fold over what is stored, kept in step.

A receipt names a reservation. Its token is one that this tracker gave, one that came with an earlier receipt, or one
that comes with this one; a token from elsewhere is stored with the first receipt that it is good for, never alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.balances import Books
from axonp2p.ledger.receipt import (
    MOST_BALANCES,
    Balance,
    Balances,
    BalancesAsked,
    DoublySigned,
    Receipt,
    ReceiptsKept,
    open_doubly_signed,
)
from axonp2p.logs import get_logger
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.admission import Promise, is_new_receipt
from tracker.database import Database
from tracker.foreign_tokens import open_foreign_token
from tracker.log_store import Appender, Stored

log = get_logger(__name__)

_REASON_LENGTH = 300


@dataclass(frozen=True)
class _Promised:
    """A reservation, by whoever gave it; `signed` when its token is not stored here yet."""

    promise: Promise
    signed: Signed[Token] | None = None
    token: Token | None = None

    def is_about(self, receipt: Receipt) -> bool:
        return receipt.client == self.promise.client and receipt.peer in self.promise.peers


@dataclass(frozen=True)
class _Opened:
    """What was handed in, once its signatures were checked."""

    receipts: list[tuple[DoublySigned, Receipt | str]]
    """Each with what it says, or why it is not believed."""
    promised: dict[str, list[_Promised]]
    """By the UUID of the reservation."""
    why_no_token: str
    """Why one of the tokens is not believed; empty when all are."""


class LedgerKeeper:
    """Doubly signed receipts. `on_news` hears of new ones that no other tracker has passed on, once they are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books = Books()
        self.on_news: Callable[[], None] = lambda: None

    def load(self) -> int:
        """Sum up what is stored; returns how many receipts."""
        self._database.load(lambda database: _add_all(database, self._books))
        return self._books.receipts

    @property
    def receipts(self) -> int:
        """How many are stored."""
        return self._books.receipts

    def balance_of(self, key: PeerId) -> Balance:
        """What one key earned and owes."""
        return self._books.balance(key)

    async def keep(
        self, receipts: Sequence[DoublySigned], tokens: Sequence[bytes] = (), *, relayed: bool = False
    ) -> ReceiptsKept:
        """Store what is new; durable when this returns. Receipts are refused one by one, each with its reason.

        `tokens` (encoded `Signed[Token]`) are those of reservations that may not be known here; `relayed` receipts
        come from another tracker.
        """
        opened = await asyncio.to_thread(_open_all, receipts, tokens)
        kept, new = await self._database.write(lambda database: _store(database, opened, relayed=relayed))
        for receipt, instead_of in new:
            self._books.add(receipt.client, receipt.peer, receipt.flops)
            if instead_of is not None:
                self._books.take_back(instead_of.client, instead_of.peer, instead_of.flops)
        if kept.reasons:
            log.debug("receipts refused", receipts=len(kept.reasons), first=next(iter(kept.reasons.values())))
        if new and not relayed:
            self.on_news()
        return kept

    async def balances(self, asked: BalancesAsked) -> Balances:
        """Of these keys, of everyone in one job, of these keys in one job, or of the largest earners."""
        if asked.job:
            books = await self._database.read(lambda database: _add_all(database, Books(), asked.job))
            return _answer(books, asked)
        return _answer(self._books, asked)


def _answer(books: Books, asked: BalancesAsked) -> Balances:
    if not asked.keys:
        return Balances(balances=books.largest(MOST_BALANCES), receipts=books.receipts)
    keys = set(asked.keys)
    found = sorted((books.balance(key) for key in keys), key=lambda one: (-one.earned_flops, -one.owed_flops, one.key))
    return Balances(balances=found, receipts=books.taking_part(keys))


def _open_all(receipts: Iterable[DoublySigned], tokens: Iterable[bytes]) -> _Opened:
    promised: dict[str, list[_Promised]] = {}
    why_no_token = ""
    for data in tokens:
        try:
            token, signed = open_foreign_token(data)
        except (PeerMisbehaved, Refused) as error:
            why_no_token = error.message
            continue
        promised.setdefault(token.uuid, []).append(_Promised(_promise_of(token), signed, token))
    return _Opened([(doubly, _open(doubly)) for doubly in receipts], promised, why_no_token)


def _open(doubly: DoublySigned) -> Receipt | str:
    try:
        return open_doubly_signed(doubly)
    except PeerMisbehaved as error:
        return error.message


_New = tuple[Receipt, Receipt | None]
"""A receipt that counts now, and the one instead of which it does."""


def _store(database: sqlite_utils.Database, opened: _Opened, *, relayed: bool) -> tuple[ReceiptsKept, list[_New]]:
    known_here: dict[str, list[_Promised]] = {}
    appender = Appender(database)
    new: list[_New] = []
    reasons: dict[str, str] = {}
    for index, (doubly, receipt) in enumerate(opened.receipts):
        if isinstance(receipt, str):
            reasons[str(index)] = receipt[:_REASON_LENGTH]
            continue
        uuid = receipt.reservation
        if uuid not in known_here:
            known_here[uuid] = _stored_promises(database, uuid)
        promised = _that_fits(receipt, [*known_here[uuid], *opened.promised.get(uuid, [])])
        try:
            if promised is None:
                raise Refused(_why_no_promise(opened.why_no_token))
            known = appender.counted(receipt)
            if is_new_receipt(receipt, doubly.receipt.payload, promised.promise, _payload(known)):
                appender.add(doubly, receipt, relayed=relayed, instead_of=known.number if known else None)
                _keep_token(database, uuid, promised)
                new.append((receipt, known.receipt if known else None))
        except Refused as error:
            reasons[str(index)] = error.message[:_REASON_LENGTH]
    appender.finish()
    known_before = len(opened.receipts) - len(new) - len(reasons)
    return ReceiptsKept(new=len(new), known=known_before, reasons=reasons), new


def _payload(known: Stored | None) -> bytes | None:
    return known.doubly.receipt.payload if known else None


def _that_fits(receipt: Receipt, promises: Sequence[_Promised]) -> _Promised | None:
    # A stranger may send a token of its own with somebody else's UUID: it must not stand in the way of the true one.
    return next((one for one in promises if one.is_about(receipt)), promises[0] if promises else None)


def _why_no_promise(why_no_token: str) -> str:
    reason = "this tracker did not give its reservation, and no token of it came along"
    return f"{reason} that can be believed: {why_no_token}" if why_no_token else reason


def _promise_of(token: Token) -> Promise:
    return Promise(token.client, frozenset(token.peers))


def _stored_promises(database: sqlite_utils.Database, reservation: str) -> list[_Promised]:
    found = database.execute(
        "SELECT payload FROM tokens WHERE uuid = ? UNION ALL SELECT payload FROM foreign_tokens WHERE uuid = ?",
        [reservation, reservation],
    )
    # Their signatures were checked, or made, before they were stored.
    return [_Promised(_promise_of(decode_as(payload, Token, Token.LIMIT))) for (payload,) in found]


def _keep_token(database: sqlite_utils.Database, reservation: str, promised: _Promised) -> None:
    token, signed = promised.token, promised.signed
    if token is not None and signed is not None:
        database.execute(
            "INSERT OR IGNORE INTO foreign_tokens (uuid, issuer, client, payload, signature) VALUES (?, ?, ?, ?, ?)",
            [token.uuid, token.issuer, token.client, signed.payload, signed.signature],
        )
    else:
        database.execute("UPDATE tokens SET used = 1 WHERE uuid = ? AND used = 0", [reservation])


def _add_all(database: sqlite_utils.Database, books: Books, job: str = "") -> Books:
    """All that counts, or all of one job. In two halves, so that no sum leaves SQLite's 64 bits."""
    wanted = "AND job = (SELECT id FROM names WHERE name = ?)" if job else ""
    for client, peer, upper, lower, count in database.execute(
        "SELECT clients.name, peers.name, sums.upper, sums.lower, sums.count FROM ("  # noqa: S608 (text of ours)
        " SELECT client, peer, sum(flops >> 32) AS upper, sum(flops & 4294967295) AS lower, count(*) AS count"
        f" FROM receipts WHERE counts = 1 {wanted} GROUP BY client, peer) AS sums"
        " JOIN names AS clients ON clients.id = sums.client JOIN names AS peers ON peers.id = sums.peer",
        [job] if job else [],
    ):
        books.add(client, peer, (upper << 32) + lower, count)
    return books
