"""Watches the logs of the other trackers: whether each only grows, and whether it has entries that this one lacks.

Receipts come by themselves from the tracker that they were handed in to (see `receipt_relay`). Where that one died
before all had heard of them, those that did have them in their logs: whoever compares hashes finds what it lacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

import sqlite_utils

from axonp2p.errors import AxonError
from axonp2p.files import replacing
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.ledger.log_watch import FILE, Looked, look_at_logs, read_watched
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.logs import get_logger
from axonp2p.supervision import alone, one_look
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.ledger.receipt_relay import OtherTracker
from tracker.log.log_fetch import LogFetch
from tracker.storage.database import Database
from tracker.storage.ledger_tables import forget_old_cursors

log = get_logger(__name__)

LOOK_EVERY_S = 10.0
PAGES_A_LOOK = 8
"""Of 2048 entries, of each tracker: a tracker that begins empty has a million entries within ten minutes."""
FOLLOWED_WITHIN_S = 20.0
"""One tracker's pages."""


class LogWatcher:
    """One supervised task, `run`. `watched` is what was seen, kept in the tracker's home."""

    def __init__(
        self, home: Path, database: Database, ledger: LedgerKeeper, others: Callable[[], Iterable[OtherTracker]],
        trusted: Callable[[PeerId], bool] = lambda tracker: False,
    ) -> None:  # fmt: skip
        """An entry that a tracker not `trusted` is the first to show counts against its budget: see `LedgerKeeper`.

        Blocks. Raises `MalformedMessage` when what was seen before cannot be read.
        """
        self.watched = read_watched(home)
        self._file = home / FILE
        self._database = database
        self._fetch = LogFetch(database, ledger)
        self._others = others
        self._trusted = self.watched.trusted = trusted
        self._looked: dict[PeerId, Looked] = {}
        self._named: set[tuple[PeerId, str]] = set()

    def says_of(self, tracker: PeerId) -> str:
        """The text about another tracker's log."""
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
        """Once at every tracker that lives, side by side: compare heads, then fetch what is lacking here."""
        others = list(self._others())
        looked = await look_at_logs([other.caller for other in others], self.watched)
        self._name_the_convicted()
        if self.watched.changed:
            content, self.watched.changed = self.watched.encoded(), False
            await asyncio.to_thread(_write, self._file, content)
        before, self._looked = self._looked, {}
        following = []
        for other, one in zip(others, looked, strict=True):
            self._looked[other.tracker] = one
            if one.unproved:
                log.warning("log not proved", tracker=other.caller.called, reason=one.unproved)
            seen = before.get(other.tracker)
            # Entries since the last look are on their way here by themselves.
            if one.head and seen and seen.head and seen.head.log == one.head.log:
                following.append(self._follow(other, seen.head))
        await asyncio.gather(*following)

    def _name_the_convicted(self) -> None:
        convicted = self.watched.convicted
        self._named &= {(one.tracker, one.log) for one in convicted}
        for one in convicted:
            if (one.tracker, one.log) not in self._named:
                self._named.add((one.tracker, one.log))
                log.error(
                    "log forked", tracker=short(one.tracker), log=one.log[:8], reason=one.why, kept=str(self._file)
                )

    async def _follow(self, other: OtherTracker, head: TreeHead) -> None:
        """Fetch those of the first entries of that log that are not here: a few pages a look, within a time limit.

        A log without end so costs no more than one that is a little ahead.
        """
        source = "" if self._trusted(other.tracker) else f"the log of {other.tracker}"
        try:
            async with asyncio.timeout(FOLLOWED_WITHIN_S):
                with one_look("following a log"):
                    upto = await self._database.read(lambda database: _cursor(database, head))
                    for _ in range(PAGES_A_LOOK):
                        if upto >= head.size:
                            return
                        upto = await self._fetch.page(other.caller, upto, head.size, source)
                        await self._move_cursor(head, upto)
        except (AxonError, TimeoutError) as error:
            reason = error.in_a_line if isinstance(error, AxonError) else "too slow"
            log.debug("log not followed", tracker=other.caller.called, reason=reason)

    async def _move_cursor(self, head: TreeHead, upto: int) -> None:
        await self._database.write(lambda database: _follow_until(database, head, upto))


def _write(path: Path, content: bytes) -> None:
    with replacing(path, lasting=True) as file:
        file.write(content)


def _follow_until(database: sqlite_utils.Database, head: TreeHead, upto: int) -> None:
    # Of each tracker one log, and so many trackers: a new log, and a new tracker, cost a stranger nothing.
    database.execute("DELETE FROM follows WHERE tracker = ?", [head.tracker])
    database.execute("INSERT INTO follows (tracker, log, upto) VALUES (?, ?, ?)", [head.tracker, head.log, upto])
    forget_old_cursors(database, "follows")


def _cursor(database: sqlite_utils.Database, head: TreeHead) -> int:
    found = database.execute("SELECT upto FROM follows WHERE tracker = ? AND log = ?", [head.tracker, head.log])
    row = found.fetchone()
    return int(row[0]) if row else 0
