"""Receipts: checked, stored once, and summed up, but for those that are void.

The sums in memory are a fold over what is stored, kept in step. A receipt names a reservation. Its token is one that
this tracker gave, one that came with an earlier receipt, or one that comes with this one; a token from elsewhere is
stored with the first receipt that it is good for, never alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.identity.peer_id import PeerId, short
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
from axonp2p.ledger.voiding import EvidenceTold, VoidingHandedIn, VoidingKept, spoiled_by
from axonp2p.logs import get_logger
from tracker.admission import is_new_receipt
from tracker.database import Database
from tracker.log_store import Appender, Stored
from tracker.promised import Brought, Promises, open_tokens
from tracker.voidings import open_handed_in, store_voiding, tell_evidence

log = get_logger(__name__)

_REASON_LENGTH = 300


@dataclass(frozen=True)
class _Opened:
    """What was handed in, once its signatures were checked."""

    receipts: list[tuple[DoublySigned, Receipt | str]]
    """Each with what it says, or why it is not believed."""
    brought: Brought


class LedgerKeeper:
    """Doubly signed receipts, and what makes some of them void.

    `on_news` hears of new ones that no other tracker has passed on, once they are stored.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books = Books()
        self.on_news: Callable[[], None] = lambda: None

    def load(self) -> int:
        """Sum up what is stored; returns how many receipts count."""
        self._database.load(lambda database: _add_all(database, self._books))
        return self._books.receipts

    @property
    def receipts(self) -> int:
        """How many count."""
        return self._books.receipts

    def balance_of(self, key: PeerId) -> Balance:
        """What one key earned and owes."""
        return self._books.balance(key)

    async def keep(
        self, receipts: Sequence[DoublySigned], tokens: Sequence[bytes] = (), *, relayed: bool = False, source: str = ""
    ) -> ReceiptsKept:
        """Store what is new; durable when this returns. Receipts are refused one by one, each with its reason.

        `tokens` (encoded `Signed[Token]`) are those of reservations that may not be known here; `relayed` receipts
        come from another tracker.
        """
        opened = await asyncio.to_thread(_open_all, receipts, tokens)
        kept, new = await self._database.write(lambda database: _store(database, opened, relayed=relayed))
        for receipt, instead_of in new:
            if receipt is not None:
                self._books.add(receipt.client, receipt.peer, receipt.flops)
            if instead_of is not None:
                self._books.take_back(instead_of.client, instead_of.peer, instead_of.flops)
        if kept.reasons:
            log.debug("receipts refused", receipts=len(kept.reasons), first=next(iter(kept.reasons.values())))
        if new and not relayed:
            self.on_news()
        return kept

    async def void(self, handed_in: VoidingHandedIn) -> VoidingKept:
        """Keep a conviction whose evidence convicts: what it is about counts no more. Durable when this returns."""
        opened = await asyncio.to_thread(open_handed_in, handed_in)
        if isinstance(opened, str):
            return VoidingKept(new=False, reason=opened)
        kept, taken_back = await self._database.write(lambda database: store_voiding(database, opened))
        if taken_back.receipts:
            self._books.take_back(taken_back.client, taken_back.peer, taken_back.flops, taken_back.receipts)
        if kept.new:
            log.info("receipts void", peer=short(taken_back.peer), job=opened.voiding.job, receipts=taken_back.receipts)
            if not handed_in.relayed:
                self.on_news()
        return kept

    async def evidence(self, sha256: bytes) -> EvidenceTold:
        """Of a conviction that is kept. Raises `NotFound`."""
        return await self._database.read(lambda database: tell_evidence(database, sha256))

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
    return _Opened([(doubly, _open(doubly)) for doubly in receipts], open_tokens(tokens))


def _open(doubly: DoublySigned) -> Receipt | str:
    try:
        return open_doubly_signed(doubly)
    except PeerMisbehaved as error:
        return error.message


_New = tuple[Receipt | None, Receipt | None]
"""A receipt that counts now, and the one instead of which it does; None for one that is void, or is not."""


def _store(database: sqlite_utils.Database, opened: _Opened, *, relayed: bool) -> tuple[ReceiptsKept, list[_New]]:
    promises, appender = Promises(database, opened.brought), Appender(database)
    new: list[_New] = []
    reasons: dict[str, str] = {}

    def if_it_counts(receipt: Receipt) -> Receipt | None:
        return None if appender.is_voided(spoiled_by(receipt)) else receipt

    for index, (doubly, receipt) in enumerate(opened.receipts):
        if isinstance(receipt, str):
            reasons[str(index)] = receipt[:_REASON_LENGTH]
            continue
        try:
            promised = promises.that_fits(receipt.reservation, receipt.client, receipt.peer)
            known = appender.counted(receipt)
            if is_new_receipt(receipt, doubly.receipt.payload, promised.promise, _payload(known)):
                appender.add(doubly, receipt, relayed=relayed, instead_of=known.number if known else None)
                promises.keep(receipt.reservation, promised)
                new.append((if_it_counts(receipt), if_it_counts(known.receipt) if known else None))
        except Refused as error:
            reasons[str(index)] = error.message[:_REASON_LENGTH]
    appender.finish()
    known_before = len(opened.receipts) - len(new) - len(reasons)
    return ReceiptsKept(new=len(new), known=known_before, reasons=reasons), new


def _payload(known: Stored | None) -> bytes | None:
    return known.doubly.receipt.payload if known else None


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
