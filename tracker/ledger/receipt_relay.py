"""Receipts, and what makes some of them void, on their way to the other trackers: each of them knows every balance.

An entry is passed on by the tracker that it was handed in to, and travels no further. For every other tracker a cursor
on the disk says up to which entry of the log here it has been told. A tracker that lost its database has a new one, and
so a new cursor: it is told everything, also what came from others, whose own trackers may be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sqlite_utils

from axonp2p.errors import AxonError, LogDamaged
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import hand_in, hand_in_voiding
from axonp2p.ledger.receipt import MOST_RECEIPTS, receipt_batch_of
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, one_look
from axonp2p.transport.http.http_caller import HttpCaller
from tracker.ledger.foreign_tokens import token_of
from tracker.ledger.voidings import handed_in_again
from tracker.storage.database import Database
from tracker.storage.ledger_tables import forget_old_cursors
from tracker.storage.log_store import LoggedReceipt, log_size, receipts_until_voiding

log = get_logger(__name__)

GATHER_S = 0.5
"""So long is waited after news: the receipts of a round come within moments of each other."""
LOOK_EVERY_S = 5.0
"""Without news: for trackers that have come back."""


@dataclass(frozen=True)
class OtherTracker:
    """Another tracker that seems to live, and the line to it."""

    tracker: PeerId
    database: str
    """As its row names it."""
    caller: HttpCaller


@dataclass(frozen=True)
class _Waiting:
    """The entries that come next for one tracker."""

    entries: list[tuple[LoggedReceipt, bytes]]
    """Receipts, and the encoded token of each one's reservation."""
    upto: int
    """Where the cursor stands once all of them are told."""
    moved: bool
    voiding: int | None = None
    """The entry that comes next makes receipts void."""


class ReceiptRelay:
    """One supervised task, `run`; `nudge` sends it on its way."""

    def __init__(self, database: Database, others: Callable[[], Iterable[OtherTracker]]) -> None:
        self._database = database
        self._others = others
        self._news = asyncio.Event()
        self._at_work: dict[PeerId, asyncio.Task[None]] = {}

    def nudge(self) -> None:
        """There are new receipts."""
        self._news.set()

    async def run(self) -> None:
        """Pass on what is new, until cancelled; a slow tracker keeps none of the others waiting."""
        try:
            while True:
                await self._wait_for_news()
                for other in self._others():
                    task = self._at_work.get(other.tracker)
                    if task is None or task.done():
                        self._at_work[other.tracker] = asyncio.create_task(self._tell(other), name="receipt relay")
                self._at_work = {tracker: task for tracker, task in self._at_work.items() if not task.done()}
        finally:
            await cancel_and_wait(*self._at_work.values())

    async def _wait_for_news(self) -> None:
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._news.wait()
            await asyncio.sleep(GATHER_S)
        except TimeoutError:
            return
        finally:
            self._news.clear()

    async def _tell(self, other: OtherTracker) -> None:
        try:
            with one_look("passing receipts on"):
                while await self._tell_some(other):
                    pass
        except LogDamaged as error:
            log.error("receipts not passed on", tracker=other.caller.called, reason=error.in_a_line)
        except AxonError as error:
            log.debug("receipts not passed on", tracker=other.caller.called, reason=error.in_a_line)

    async def _tell_some(self, other: OtherTracker) -> bool:
        """Pass on one batch; whether there may be more."""
        waiting = await self._database.read(lambda database: _waiting_for(database, other))
        if waiting.voiding is not None:
            await self._tell_voiding(other, waiting.voiding)
            return True
        if not waiting.entries:
            if waiting.moved:
                await self._database.write(lambda database: _advance(database, other, waiting.upto))
            return False
        batch = receipt_batch_of((one.doubly, token) for one, token in waiting.entries)
        kept = await hand_in(other.caller, batch.receipts, batch.tokens, relayed=True)
        for index, reason in kept.refused.items():
            log.warning(
                "receipt not taken", tracker=other.caller.called, number=waiting.entries[index][0].number, reason=reason
            )
        last = waiting.entries[len(batch.receipts) - 1][0].number + 1
        await self._database.write(lambda database: _advance(database, other, last))
        log.info("receipts passed on", tracker=other.caller.called, receipts=len(batch.receipts), new=kept.new)
        return True

    async def _tell_voiding(self, other: OtherTracker, number: int) -> None:
        handed_in = await self._database.read(lambda database: handed_in_again(database, number))
        if handed_in is None:
            log.error("evidence is lacking", entry=number)
        else:
            kept = await hand_in_voiding(other.caller, handed_in)
            if kept.reason:
                log.warning("conviction not taken", tracker=other.caller.called, number=number, reason=kept.reason)
        await self._database.write(lambda database: _advance(database, other, number + 1))


def _waiting_for(database: sqlite_utils.Database, other: OtherTracker) -> _Waiting:
    last = log_size(database)
    cursor = _cursor(database, other)
    upto, whole_until = cursor or (0, last)
    found = database.execute(
        "SELECT number FROM entries WHERE number >= ? AND number < ? AND (relayed = 0 OR number < ?)"
        " ORDER BY number LIMIT ?",
        [upto, last, whole_until, MOST_RECEIPTS],
    ).fetchall()
    numbers = [number for (number,) in found]
    damaged: list[LogDamaged] = []
    receipts = receipts_until_voiding(database, numbers, damaged.append)
    entries = [(one, token_of(database, one.receipt)) for one in receipts]
    for error in damaged:
        log.error("an entry is damaged and not passed on", reason=error.message)
    if numbers and not entries:
        if len(damaged) < len(numbers):
            return _Waiting([], last, moved=True, voiding=numbers[len(damaged)])
        return _Waiting([], numbers[-1] + 1, moved=True)
    # A first cursor is kept also where there is nothing to tell: what comes from others afterwards goes no further.
    return _Waiting(entries, last, moved=last > upto or cursor is None)


def _cursor(database: sqlite_utils.Database, other: OtherTracker) -> tuple[int, int] | None:
    found: tuple[int, int] | None = database.execute(
        "SELECT upto, whole_until FROM relays WHERE tracker = ? AND database = ?", [other.tracker, other.database]
    ).fetchone()
    return found


def _advance(database: sqlite_utils.Database, other: OtherTracker, upto: int) -> None:
    _, whole_until = _cursor(database, other) or (0, log_size(database))
    database.execute("DELETE FROM relays WHERE tracker = ?", [other.tracker])
    database.execute(
        "INSERT INTO relays (tracker, database, upto, whole_until) VALUES (?, ?, ?, ?)",
        [other.tracker, other.database, upto, whole_until],
    )
    forget_old_cursors(database, "relays")
