"""Receipts: checked, stored once, and summed up. The sums in memory are a fold over what is stored, kept in step."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import sqlite_utils

from axonp2p.errors import PeerMisbehaved, Refused
from axonp2p.ledger.balances import Books
from axonp2p.ledger.receipt import (
    MOST_BALANCES,
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
from tracker.admission import Promise, is_new_receipt
from tracker.database import Database

log = get_logger(__name__)

Opened = list[tuple[DoublySigned, Receipt | str]]
_REASON_LENGTH = 300


class LedgerKeeper:
    """Doubly signed receipts for reservations of this tracker."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._books = Books()

    def load(self) -> int:
        """Sum up what is stored; returns how many receipts."""
        self._database.load(lambda database: _add_all(database, self._books, "", []))
        return self._books.receipts

    @property
    def receipts(self) -> int:
        """How many are stored."""
        return self._books.receipts

    async def keep(self, receipts: Sequence[DoublySigned]) -> ReceiptsKept:
        """Store what is new; durable when this returns. Receipts are refused one by one, each with its reason."""
        opened = await asyncio.to_thread(lambda: [(doubly, _open(doubly)) for doubly in receipts])
        kept, new = await self._database.write(lambda database: _store(database, opened))
        for receipt in new:
            self._books.add(receipt.client, receipt.peer, receipt.flops)
        if kept.reasons:
            log.debug("receipts refused", receipts=len(kept.reasons), first=next(iter(kept.reasons.values())))
        return kept

    async def balances(self, asked: BalancesAsked) -> Balances:
        """Of these keys, of everyone in one job, of these keys in one job, or of the largest earners."""
        if asked.job:
            books = await self._database.read(
                lambda database: _add_all(database, Books(), "WHERE job = ?", [asked.job])
            )
            return _answer(books, asked)
        return _answer(self._books, asked)


def _answer(books: Books, asked: BalancesAsked) -> Balances:
    if not asked.keys:
        return Balances(balances=books.largest(MOST_BALANCES), receipts=books.receipts)
    keys = set(asked.keys)
    found = sorted((books.balance(key) for key in keys), key=lambda one: (-one.earned_flops, -one.owed_flops, one.key))
    return Balances(balances=found, receipts=books.taking_part(keys))


def _open(doubly: DoublySigned) -> Receipt | str:
    try:
        return open_doubly_signed(doubly)
    except PeerMisbehaved as error:
        return error.message


def _store(database: sqlite_utils.Database, opened: Opened) -> tuple[ReceiptsKept, list[Receipt]]:
    promises: dict[str, Promise | None] = {}
    new: list[Receipt] = []
    reasons: dict[str, str] = {}
    for index, (doubly, receipt) in enumerate(opened):
        if isinstance(receipt, str):
            reasons[str(index)] = receipt[:_REASON_LENGTH]
            continue
        if receipt.reservation not in promises:
            promises[receipt.reservation] = _promise(database, receipt.reservation)
        try:
            if is_new_receipt(
                receipt, doubly.receipt.payload, promises[receipt.reservation], _known(database, receipt)
            ):
                _insert(database, doubly, receipt)
                new.append(receipt)
        except Refused as error:
            reasons[str(index)] = error.message[:_REASON_LENGTH]
    known = len(opened) - len(new) - len(reasons)
    return ReceiptsKept(new=len(new), known=known, reasons=reasons), new


def _promise(database: sqlite_utils.Database, reservation: str) -> Promise | None:
    found = database.execute("SELECT payload FROM tokens WHERE uuid = ?", [reservation]).fetchone()
    if found is None:
        return None
    token = decode_as(found[0], Token, Token.LIMIT)  # we signed it ourselves
    return Promise(token.client, frozenset(token.peers))


def _known(database: sqlite_utils.Database, receipt: Receipt) -> bytes | None:
    found = database.execute(
        "SELECT payload FROM receipts WHERE reservation = ? AND peer = ? AND number = ?",
        [receipt.reservation, receipt.peer, receipt.number],
    ).fetchone()
    return found[0] if found else None


def _insert(database: sqlite_utils.Database, doubly: DoublySigned, receipt: Receipt) -> None:
    row = {
        "reservation": receipt.reservation,
        "peer": receipt.peer,
        "number": receipt.number,
        "client": receipt.client,
        "job": receipt.job,
        "flops": receipt.flops,
        "payload": doubly.receipt.payload,
        "client_signature": doubly.receipt.signature,
        "peer_signature": doubly.peer_signature,
    }
    names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
    database.execute(f"INSERT INTO receipts ({names}) VALUES ({places})", row)  # noqa: S608 (names of ours)


def _add_all(database: sqlite_utils.Database, books: Books, where: str, values: list[str]) -> Books:
    for client, peer, flops in database.execute(f"SELECT client, peer, flops FROM receipts {where}", values):  # noqa: S608
        books.add(client, peer, flops)
    return books
