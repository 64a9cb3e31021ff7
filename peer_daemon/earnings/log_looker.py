"""Looks up some of this peer's receipts in trackers' logs, in the background: what `proofs` asks for, done."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, BadSignature, Busy, PeerMisbehaved, Refused, Unreachable
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.balances import credits_of
from axonp2p.ledger.ledger_client import balances
from axonp2p.ledger.log_client import inclusion
from axonp2p.ledger.log_watch import Looked, compare_head, keep_watched, look_at_logs, read_watched
from axonp2p.ledger.tree_head import TreeHead, open_head
from axonp2p.ledger.watched_logs import WatchedLogs
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_lines import TrackerLines, reason_of
from axonp2p.transport.http.http_caller import HttpCaller
from peer_daemon.control.status import LogNow
from peer_daemon.earnings.proofs import ANY, NEWEST, SETTLED_AFTER_S, Proofs
from peer_daemon.earnings.receipts_book import Confirmed, ReceiptsBook

log = get_logger(__name__)

LOOKS_WHETHER_DUE_S = 10.0
_LONGEST_REASON = 300


class LogLooker:
    """One supervised task, `run`. `proofs` is told what comes of it."""

    def __init__(
        self,
        home: Path,
        book: ReceiptsBook,
        lines: TrackerLines,
        own: PeerId,
        clock: Clock,
        chance: random.Random,
        proofs: Proofs,
    ) -> None:
        """Heads that were seen are kept in `home`, so that a log that was rewritten is known after a restart."""
        self._home = home
        self._book = book
        self._lines = lines
        self._own = own
        self._clock = clock
        self._chance = chance
        self._proofs = proofs

    async def run(self) -> None:
        """Look whenever it is due, until cancelled."""
        while True:
            await asyncio.sleep(LOOKS_WHETHER_DUE_S)
            if self._proofs.is_due(self._clock.now(), self._book.earnings.acknowledged):
                await self.look()

    async def look(self) -> None:
        """Look at one tracker: the first that answers."""
        self._proofs.begin(self._clock.now(), self._book.earnings.acknowledged)
        try:
            with one_look("a look at a log"):
                watched = await asyncio.to_thread(read_watched, self._home)
                watched.trusted = lambda tracker: self._lines.health.is_trusted(tracker, self._clock.now())
                found = await self._look_at_one(watched)
                await asyncio.to_thread(keep_watched, self._home, watched)
        except (AxonError, OSError) as error:
            why = error.in_a_line if isinstance(error, AxonError) else f"{error.filename}: {error.strerror}"
            log.warning("no log was looked at", reason=why)
            self._proofs.found_nothing(_bounded(why))
            return
        if found.wrong:
            log.warning("a tracker's log does not hold", tracker=found.tracker, reason=found.wrong)
        self._proofs.found(found)

    async def _look_at_one(self, watched: WatchedLogs) -> LogNow:
        health, now = self._lines.health, self._clock.now()
        lines = [
            (line.address.host_port, line)
            for line in self._lines.in_order()
            if health.may_be_asked(str(line.address), now)
        ]
        silent: list[str] = []
        for line in self._proofs.whom(lines):
            try:
                return await self._lines.ask(line, lambda asked: self._look_at(asked, watched))
            except AxonError as error:
                silent.append(reason_of(line, error))
        raise Unreachable("; ".join(silent) if silent else "no tracker answers")

    async def _look_at(self, line: HttpCaller, watched: WatchedLogs) -> LogNow:
        (looked,) = await look_at_logs([line], watched)
        if looked.head is None:
            raise Unreachable(looked.trouble)
        chances = [self._chance.random() for _ in range(ANY)]
        picked = await asyncio.to_thread(self._book.some_confirmed, NEWEST, chances, looked.head.tracker)
        proved, wrong = await self._prove(line, looked.head, picked, watched)
        told = await balances(line, [self._own])
        counts = credits_of(sum(one.earned_flops for one in told.balances if one.key == self._own))
        return LogNow(
            tracker=line.address.host_port,
            at=self._clock.now(),
            proved=proved,
            entries=looked.head.size,
            counts=counts,
            wrong=_bounded(_why_false(looked, looked.head, watched) or wrong),
        )

    async def _prove(
        self, line: HttpCaller, head: TreeHead, picked: Sequence[Confirmed], watched: WatchedLogs
    ) -> tuple[int, str]:
        """How many of the picked receipts the tracker proves to have; why it does not prove one, if it does not."""
        proved = 0
        for one in picked:
            try:
                told = await inclusion(line, one.entry)
                shown = open_head(told.head)
                if (shown.tracker, shown.log) != (head.tracker, head.log):
                    raise BadSignature("it is shown under the head of another log")
                await compare_head(told.head, line, watched)
                proved += 1
            except Busy:
                break  # what was proved is proved; the others the next time
            except (Refused, PeerMisbehaved) as error:
                if isinstance(error, Refused) and one.tracker != head.tracker:
                    continue  # it never showed that it had this one, so it may never have got it
                if isinstance(error, PeerMisbehaved) or one.signed_at < self._clock.now() - SETTLED_AFTER_S:
                    return proved, f"a receipt of {one.job} is not proved to be in its log: {error.in_a_line}"
        return proved, ""


def _why_false(looked: Looked, head: TreeHead, watched: WatchedLogs) -> str:
    if convicted := watched.conviction_of(head.tracker):
        return f"its log is false: {convicted.why}"
    return looked.unproved


def _bounded(reason: str) -> str:
    """A stranger's words may be in it."""
    return " ".join(reason.split())[:_LONGEST_REASON]
