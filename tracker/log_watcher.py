"""Watches the logs of the other trackers: whether each only grows, and whether it has entries that this one lacks.

Receipts come by themselves from the tracker that they were handed in to (see `receipt_relay`). Where that one died
before all had heard of them, those that did have them in their logs: whoever compares hashes finds what it lacks.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import sqlite_utils

from axonp2p.errors import AxonError
from axonp2p.files import replacing
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.entry import decode_entry
from axonp2p.ledger.log_client import entries, evidence, leaves
from axonp2p.ledger.log_messages import MOST_ENTRIES, MOST_LEAVES
from axonp2p.ledger.log_watch import FILE, Looked, look_at_logs, read_watched
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.ledger.voiding import Voided, VoidingHandedIn, open_voiding
from axonp2p.logs import get_logger
from axonp2p.supervision import alone, one_look
from tracker.database import Database
from tracker.ledger_keeper import LedgerKeeper
from tracker.log_store import number_of
from tracker.receipt_relay import OtherTracker

log = get_logger(__name__)

LOOK_EVERY_S = 10.0


class LogWatcher:
    """One supervised task, `run`. `watched` is what was seen, kept in the tracker's home."""

    def __init__(
        self, home: Path, database: Database, ledger: LedgerKeeper, others: Callable[[], Iterable[OtherTracker]]
    ) -> None:
        """Blocks. Raises `MalformedMessage` when what was seen before cannot be read."""
        self.watched = read_watched(home)
        self._file = home / FILE
        self._database = database
        self._ledger = ledger
        self._others = others
        self._looked: dict[PeerId, Looked] = {}
        self._named: set[tuple[PeerId, str]] = set()

    def says_of(self, tracker: PeerId) -> str:
        """What there is to say of another tracker's log."""
        if convicted := self.watched.conviction_of(tracker):
            return f"FALSE: {convicted.why}"
        looked = self._looked.get(tracker)
        if looked is None:
            return ""
        if looked.unproved:
            return f"not proved: {looked.unproved}"
        return f"{looked.head.size} entries" if looked.head else looked.trouble

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await alone("a look at the other logs", self.look())
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Once at every tracker that lives: compare heads, then fetch what is lacking here."""
        others = list(self._others())
        looked = await look_at_logs([other.caller for other in others], self.watched)
        self._name_the_convicted()
        if self.watched.changed:
            content, self.watched.changed = self.watched.encoded(), False
            await asyncio.to_thread(_write, self._file, content)
        before, self._looked = self._looked, {}
        for other, one in zip(others, looked, strict=True):
            self._looked[other.tracker] = one
            if one.unproved:
                log.warning("log not proved", tracker=other.caller.called, reason=one.unproved)
            seen = before.get(other.tracker)
            # What came since the last look is on its way here by itself.
            if one.head and seen and seen.head and seen.head.log == one.head.log:
                await self._follow(other, seen.head)

    def _name_the_convicted(self) -> None:
        for one in self.watched.convicted:
            if (one.tracker, one.log) not in self._named:
                self._named.add((one.tracker, one.log))
                log.error(
                    "log forked", tracker=short(one.tracker), log=one.log[:8], reason=one.why, kept=str(self._file)
                )

    async def _follow(self, other: OtherTracker, head: TreeHead) -> None:
        """Fetch those of the first entries of that log that are not here."""
        try:
            with one_look("following a tracker's log"):
                upto = await self._database.read(lambda database: _cursor(database, head))
                while upto < head.size:
                    page = await leaves(other.caller, upto, min(MOST_LEAVES, head.size - upto))
                    if not page:
                        return
                    lacking = await self._database.read(functools.partial(_unknown, first=upto, page=page))
                    await self._fetch(other, lacking)
                    upto = await self._move_cursor(head, upto + len(page))
        except AxonError as error:
            log.debug("log not followed", tracker=other.caller.called, reason=error.in_a_line)

    async def _fetch(self, other: OtherTracker, lacking: list[int]) -> None:
        while lacking:
            told = await entries(other.caller, lacking[:MOST_ENTRIES])
            decoded = [decode_entry(entry) for entry in told.entries]
            receipts = [entry for entry in decoded if not isinstance(entry, Voided)]
            new = 0
            if receipts:
                new += (await self._ledger.keep(receipts, told.tokens, relayed=True)).new
            for entry in decoded:
                if isinstance(entry, Voided):
                    new += await self._fetch_evidence(other, entry)
            log.info("entries fetched", tracker=other.caller.called, entries=len(decoded), new=new)
            del lacking[: len(decoded)]

    async def _fetch_evidence(self, other: OtherTracker, voided: Voided) -> bool:
        """Of a word that makes receipts void; whether it was news."""
        sha256 = open_voiding(voided.voided).evidence
        told = await evidence(other.caller, sha256)
        handed_in = VoidingHandedIn(voided=voided.voided, evidence=told.evidence, tokens=told.tokens, relayed=True)
        kept = await self._ledger.void(handed_in)
        if kept.reason:
            log.warning("conviction not taken", tracker=other.caller.called, reason=kept.reason)
        return kept.new

    async def _move_cursor(self, head: TreeHead, upto: int) -> int:
        statement = "INSERT OR REPLACE INTO follows (tracker, log, upto) VALUES (?, ?, ?)"
        await self._database.write(lambda database: database.execute(statement, [head.tracker, head.log, upto]))
        return upto


def _write(path: Path, content: bytes) -> None:
    with replacing(path, lasting=True) as file:
        file.write(content)


def _cursor(database: sqlite_utils.Database, head: TreeHead) -> int:
    found = database.execute("SELECT upto FROM follows WHERE tracker = ? AND log = ?", [head.tracker, head.log])
    row = found.fetchone()
    return int(row[0]) if row else 0


def _unknown(database: sqlite_utils.Database, first: int, page: Sequence[tuple[int, bytes]]) -> list[int]:
    return [number for number, (place, leaf) in enumerate(page, first) if number_of(database, place, leaf) is None]
