"""Looks for damage while the tracker runs: every entry beside its hash and its row in the index, a page at a time.

A row that is wrong is made anew from its entry. A damaged entry is asked of other trackers by its hash, so what they
give is that very entry or nothing. An entry that nobody can give back is told: in the log, and by `/v1/health`, which
`axon doctor` reads. Compare the scrubbing of ZFS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import sqlite_utils

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.ledger.log_client import INCLUSION_PATH
from axonp2p.ledger.log_messages import HISTORY_LIMIT, InclusionAsked, InclusionTold
from axonp2p.ledger.merkle import leaf_hash
from axonp2p.ledger.tiles import leaf_at
from axonp2p.ledger.voiding import Spoiled
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.ledger.receipt_relay import OtherTracker
from tracker.storage.database import Database
from tracker.storage.index_mending import drop_added, has_added, look_at_page, mend_rows, voided_since
from tracker.storage.log_check import voided_by_entries
from tracker.storage.log_store import log_size, put_back, tile_reader

log = get_logger(__name__)

PAGE = 256
PAGE_EVERY_S = 0.5
"""Some ten milliseconds of work each: a fiftieth of a core while it looks."""
LEAST_PAUSE_S = 60.0
"""From the end of one pass to the next."""
PAUSE_PER_PASS = 9.0
"""A long log's pass takes long; it then rests this many times as long."""
MOST_ASKED = 64
"""Damaged entries that others are asked for in one pass."""


class LogScrub:
    """One supervised task, `run`."""

    def __init__(
        self, database: Database, ledger: LedgerKeeper, others: Callable[[], Iterable[OtherTracker]], clock: Clock
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._others = others
        self._clock = clock
        self._voided: set[Spoiled] = set()
        self.damaged: set[int] = set()
        """Entries that nobody could give back yet."""

    @property
    def trouble(self) -> str:
        """The damage in this tracker's own log, in words; empty when none is known."""
        if not self.damaged:
            return ""
        return f"{len(self.damaged)} of its log's entries damaged, the first is number {min(self.damaged)}"

    async def run(self) -> None:
        """Pass after pass, until cancelled."""
        while True:
            began = self._clock.monotonic()
            try:
                with one_look("a scrub of the log"):
                    await self.scrub(asyncio.sleep)
            except AxonError as error:
                log.error("the log cannot be looked through", reason=error.in_a_line)
            await asyncio.sleep(max(LEAST_PAUSE_S, PAUSE_PER_PASS * (self._clock.monotonic() - began)))

    async def scrub(self, pause: Callable[[float], Awaitable[None]]) -> None:
        """One pass. Raises `LogDamaged` when hashes are lacking, and `Busy`."""
        first, size = 0, await self._database.read(log_size)
        self._voided = await self._database.read(voided_by_entries)
        damaged: list[int] = []
        while first < size:
            end = min(first + PAGE, size)
            damaged += await self._page(first, end)
            first = end
            await pause(PAGE_EVERY_S)
        if await self._database.read(has_added):
            log.error("the index had rows of entries that are none; balances are summed again")
            await self._database.write(drop_added)
            await self._ledger.sum_anew()
        self.damaged &= set(damaged)  # what a peer handed in again is whole
        for number in damaged[:MOST_ASKED]:
            await self._heal(number)

    async def _page(self, first: int, end: int) -> list[int]:
        def look(database: sqlite_utils.Database) -> tuple[list[int], list[int]]:
            looked = look_at_page(database, first, end, voided_since(database, self._voided))
            return looked.damaged, looked.rows

        damaged, rows = await self._database.read(look)
        if rows:
            log.error("the index was damaged; balances are summed again", rows=len(rows), first=rows[0])
            await self._database.write(lambda database: mend_rows(database, rows, voided_since(database, self._voided)))
            await self._ledger.sum_anew()
        return damaged

    async def _heal(self, number: int) -> None:
        """Have another tracker give a damaged entry back."""
        asked = await self._database.read(lambda database: _question(database, number))
        for other in self._others():
            if asked is None:
                break
            try:
                told = await other.caller.call(INCLUSION_PATH, asked, InclusionTold, HISTORY_LIMIT)
            except AxonError as error:
                log.debug("an entry is not given back", tracker=other.caller.called, reason=error.in_a_line)
                continue
            entry = told.included.entry
            if leaf_hash(entry) == asked.leaf and await self._database.write(
                lambda database, entry=entry: put_back(database, number, entry)  # type: ignore[misc]
            ):
                self.damaged.discard(number)
                log.warning("a damaged entry is whole again", entry=number, tracker=other.caller.called)
                return
        if number not in self.damaged:
            self.damaged.add(number)
            log.error("an entry of the log is damaged, and no tracker gives it back", entry=number)


def _question(database: sqlite_utils.Database, number: int) -> InclusionAsked | None:
    place = database.execute("SELECT place FROM receipts WHERE entry = ?", [number]).fetchone()
    return InclusionAsked(place=place[0], leaf=leaf_at(number, tile_reader(database))) if place else None
