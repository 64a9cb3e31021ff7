"""Several trackers' ledgers in one process: real databases, real relays and watchers, and lines that a test cuts.

A line carries the encoded messages straight to the other ledger. Nothing runs by itself: a test says who speaks when.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from axonp2p.errors import AxonError, Refused
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.balances import Balance, BalanceSums
from axonp2p.ledger.ledger_client import RECEIPTS_PATH, VOIDINGS_PATH
from axonp2p.ledger.log_client import CONSISTENCY_PATH, ENTRIES_PATH, EVIDENCE_PATH, HEADS_PATH, LEAVES_PATH
from axonp2p.ledger.log_messages import HeadsTold
from axonp2p.ledger.receipt import Balances, BalancesAsked, DoublySigned, Receipt, ReceiptsKept
from axonp2p.ledger.voiding import VoidingHandedIn, VoidingKept
from axonp2p.settings import TrackerSettings
from axonp2p.wire.codec import Message, decode_as, encode
from tests.fakes import ManualClock
from tracker.ledger.intake import TrackerTrust
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.ledger.receipt_relay import OtherTracker, ReceiptRelay
from tracker.log.log_keeper import LogKeeper
from tracker.log.log_watcher import LogWatcher
from tracker.log.maintenance import back_up, check_home, restore
from tracker.replication.own_tracker_row import database_name
from tracker.storage.database import Database
from tracker.storage.log_store import log_size

T = TypeVar("T")


class Ledger:
    """One tracker's, in its home; `open` and `close` as often as wanted."""

    def __init__(self, home: Path, clock: ManualClock) -> None:
        home.mkdir()
        self.home, self.clock = home, clock
        self.key = load_or_create_key(home / "tracker.key")
        self.reaches: dict[str, Ledger] = {}
        """Other ledgers by name, as long as the line is not cut."""

    def open(self) -> None:
        """Begin, or go on, with what is on the disk."""
        self.database = Database(self.home / "tracker.db")
        self.keeper = LedgerKeeper(self.database, TrackerTrust(trusted=lambda tracker: True))
        self.keeper.load()
        self.name = self.database.load(database_name)
        self.log = LogKeeper(self.key, self.database, self.clock)
        assert self.log.load(self.name) is None
        self.log.begin(self.name)
        self.watcher = LogWatcher(self.home, self.database, self.keeper, self._others)
        self.relay = ReceiptRelay(self.database, self._others)
        self.database.start()

    async def close(self) -> None:
        """Stop."""
        await self.database.close()

    async def hand_in(self, receipts: list[DoublySigned], tokens: list[bytes]) -> ReceiptsKept | None:
        """As clients and peers do; None when the disk failed."""
        try:
            return await self.keeper.keep(receipts, tokens)
        except AxonError:
            return None

    async def hand_in_voiding(self, voiding: VoidingHandedIn) -> VoidingKept | None:
        """The same for a conviction."""
        try:
            return await self.keeper.void(voiding)
        except AxonError:
            return None

    async def while_the_disk_fails(self, work: Awaitable[Message | None], steps: int) -> bool:
        """The transaction is broken off after so many of SQLite's steps; whether it was done before."""
        connection: sqlite3.Connection = self.database._writing.conn
        left = steps

        def count() -> int:
            nonlocal left
            left -= 1
            return int(left < 0)

        connection.set_progress_handler(count, 10)
        try:
            return await work is not None
        finally:
            connection.set_progress_handler(None, 0)

    async def speak(self) -> None:
        """Pass on what was handed in, and look at the other logs."""
        for other in self._others():
            await self.relay._tell(other)
        self.clock.time += 2
        await self.watcher.look()

    async def balances(self) -> Balances:
        """Of everybody."""
        return await self.keeper.balances(BalancesAsked())

    async def log_size(self) -> int:
        """How many entries its log has."""
        return await self.database.read(log_size)

    async def go_back_to(self, backup: Path) -> None:
        """Restore a backup."""
        await self.close()
        await asyncio.to_thread(restore, self.home, backup)
        self.open()

    async def back_up(self, file: Path) -> None:
        """Make one."""
        await asyncio.to_thread(back_up, self.home, file)

    async def problems(self) -> list[Any]:
        """What `axon-tracker check` says."""
        checked = await asyncio.to_thread(check_home, self.home, TrackerSettings(), offline=True)
        return checked.problems

    def _others(self) -> list[OtherTracker]:
        return [
            OtherTracker(other.key.peer_id, other.name, Line(name, other))  # type: ignore[arg-type]
            for name, other in self.reaches.items()
        ]


@dataclass
class Line:
    """In the place of an `HttpCaller`."""

    called: str
    to: Ledger

    async def call(self, path: str, message: Message | None, answer: type[T], limit: int) -> T:
        """What the tracker's routes would answer."""
        told = await self._answer(path, message)
        return decode_as(encode(told), answer, limit)

    async def _answer(self, path: str, message: Any) -> Message:
        to = self.to
        if path == RECEIPTS_PATH:
            return await to.keeper.keep(message.receipts, message.tokens, relayed=message.relayed)
        if path == VOIDINGS_PATH:
            return await to.keeper.void(message)
        if path == EVIDENCE_PATH:
            return await to.keeper.evidence(message.sha256)
        if path == HEADS_PATH:
            evidence = [one.evidence for one in to.watcher.watched.convicted]
            return HeadsTold(own=await to.log.head(), seen=to.watcher.watched.heads, evidence=evidence)
        if path == CONSISTENCY_PATH:
            return await to.log.consistency(message)
        if path == LEAVES_PATH:
            return await to.log.leaves(message.first, message.count)
        if path == ENTRIES_PATH:
            return await to.log.entries(message.numbers)
        raise Refused(f"nothing is at {path}")


def join(*ledgers: Ledger) -> None:
    """Every one reaches every other one."""
    for one in ledgers:
        one.reaches = {other.home.name: other for other in ledgers if other is not one}


def cut(one: Ledger, other: Ledger) -> None:
    """They do not reach each other any more."""
    one.reaches.pop(other.home.name, None)
    other.reaches.pop(one.home.name, None)


def fold(receipts: Iterable[Receipt]) -> dict[PeerId, Balance]:
    """The balance of every key in `receipts`, each of which counts and stands there once."""
    books = BalanceSums()
    for receipt in receipts:
        books.add(receipt.client, receipt.peer, receipt.flops)
    return {balance.key: balance for balance in books.largest(2 * books.receipts)}
