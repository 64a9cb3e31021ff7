"""Keeps the table equal to those of the other trackers: tells them what is new, asks for what is missing.

Once a second what was announced here goes to all that live; every few seconds one of them, by chance, is asked for what
we lack, and one that comes back at once. One that is away is tried again and again, by saying who we are.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, PeerMisbehaved, Refused, SettingsError
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, one_look
from axonp2p.table.announce_datagrams import news_of
from axonp2p.table.records import KnownTrackers, Vouching
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.wire.envelope import Signed
from tracker.ledger.receipt_relay import OtherTracker
from tracker.replication.own_tracker_row import OwnTrackerRow
from tracker.replication.replica import Replica
from tracker.replication.row_intake import RowIntake
from tracker.replication.sync_line import SyncLine
from tracker.replication.tracker_book import KnownTracker, TrackerBook

log = get_logger(__name__)

PUSH_EVERY_S = 1.0
PULL_EVERY_S = 4.0
EVERYTHING = 1 / 16
"""The share of those comparisons that leave nothing out, not even what may be on its way."""
AGAIN_AT_ONCE_S = 2.0
"""A tracker is asked for everything at most so often, however often it says that we missed something."""
LONGEST_PULL_S, LONGEST_PULL_OF_LEARNT_S = 300.0, 60.0
TURN_WITHIN_S = 15.0
"""Of several that came back with the same rows, one is asked for everything after the other: all at once would send the
same rows several times. One that is slow holds the others up for no longer than this."""


class Synchronisation:
    """One supervised task, `run`, and those that it starts."""

    def __init__(
        self, own: OwnTrackerRow, book: TrackerBook, replica: Replica, arrivals: RowIntake, clock: Clock,
        chance: random.Random,
    ) -> None:  # fmt: skip
        self.vouches_for: Sequence[str] = ()
        """Addresses of the trackers that the operator vouches for."""
        self.dials = DialPolicy(tuple)
        """Which addresses of trackers that strangers named may be dialled from here."""
        self.own = own
        self.book = book
        self._replica = replica
        self._arrivals = arrivals
        self._clock = clock
        self._chance = chance
        self.lines: dict[str, SyncLine] = {}
        """By address."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self._pulled_everything: dict[str, float] = {}
        self.news = news_of((), ())
        """Which trackers `books` names, in four bytes."""

    def books(self) -> KnownTrackers:
        """Ourselves first, then those that live; and whom we vouch for, as far as they have said who they are."""
        now = self._clock.now()
        vouching = self.own.vouching(self.book.ids_of(self.vouches_for), now)
        return KnownTrackers(trackers=[self.own.at(now), *self.book.rows(now)], vouching=vouching)

    def others(self) -> list[OtherTracker]:
        """The living ones, with a line to each."""
        return [
            OtherTracker(known.tracker, known.row.database, self.lines[known.address].caller)
            for known in self.book.living()
            if known.row is not None and known.address in self.lines
        ]

    def called_by(self, tracker: PeerId, *, missed: bool) -> None:
        """That tracker pushed to us; with `missed`, earlier pushes had not come."""
        self.book.seen_alive(tracker)
        known = self.book.living_one(tracker)
        if missed and known is not None:
            self._pull_everything(known)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            next_pull = 0.0
            while True:
                with suppress(AxonError, OSError), one_look("a round of the synchronisation"):
                    self._tick()
                    if self._clock.monotonic() >= next_pull:
                        next_pull = self._clock.monotonic() + PULL_EVERY_S * self._chance.uniform(0.75, 1.25)
                        self._pull_from_one()
                await asyncio.sleep(PUSH_EVERY_S * self._chance.uniform(0.9, 1.1))
        finally:
            await cancel_and_wait(*self._tasks.values())
            for line in self.lines.values():
                await line.close()

    def _tick(self) -> None:
        now = self._clock.now()
        news = self._replica.take_news()
        self._close_forgotten()
        living = (known.address for known in self.book.living())
        self.news = news_of(living, self.book.ids_of(self.vouches_for).values())
        to_introduce = {known.address for known in self.book.to_introduce(now)}
        for known in self.book:
            line = self._line(known)
            if line is None:
                continue
            if known.lives:
                line.add(news)
            elif news:
                line.give_up()
            if known.address in to_introduce or (known.lives and line.has_news):
                introduce = known.address in to_introduce
                self._start(f"push {known.address}", known, self._tell(known, line, introduce=introduce))

    def _line(self, known: KnownTracker) -> SyncLine | None:
        line = self.lines.get(known.address)
        if line is None:
            try:
                dials = None if known.standing.is_trusted else self.dials
                line = SyncLine(known.address, self.own, self._replica, self._arrivals, self._clock, dials)
            except SettingsError:  # a peer's row may say anything; the settings were checked at the start
                self.book.failed(known.address, self._clock.now())
                return None
            self.lines[known.address] = line
        return line

    def _close_forgotten(self) -> None:
        for address in [address for address in self._pulled_everything if self.book.find(address) is None]:
            del self._pulled_everything[address]
        self._replica.keep_only({known.tracker for known in self.book})
        for address in [address for address in self.lines if self.book.find(address) is None]:
            self._start(f"close {address}", None, self.lines.pop(address).close())

    async def _tell(self, known: KnownTracker, line: SyncLine, *, introduce: bool) -> None:
        if introduce:
            told = await line.introduce(self.books())
            row, now = told.row, self._clock.now()
            came_back = self.book.answered(known.address, now)
            changed = self.book.introduced(known.address, row, told.signed, now)
            self._hear_vouching(known, told.vouching)
            for other in told.others:
                self.book.hear_of(other.address, now)
            if changed:
                self.book.tell_all()
                known.introduced = now
            if (came_back or changed) and self.book.find(known.address) is not None:
                log.info("tracker found", tracker=short(row.tracker), at=line.address.host_port)
                self._pull_everything(known)
        if self.book.find(known.address) is not None:
            if not await line.push(known.tracker):
                known.introduced = 0.0  # it may have been started anew, and not know us any more
            self._answered(known, line)

    def _hear_vouching(self, known: KnownTracker, vouching: Signed[Vouching] | None) -> None:
        try:
            if vouching is not None:
                self.book.hear_vouching(known.address, vouching, self._clock.now())
        except (PeerMisbehaved, Refused) as error:  # two clocks may differ: the table is shared all the same
            log.warning("a list of trackers is not believed", told_by=short(known.tracker), reason=error.in_a_line)

    def _pull_from_one(self) -> None:
        self._replica.forget(self._clock.now())
        living = [known for known in self.book.living() if self.lines[known.address].may_pull]
        if living:
            known = self._chance.choice(living)
            everything = self._chance.random() < EVERYTHING
            self._start(f"pull {known.address}", known, self._pull(known, everything=everything))

    def _pull_everything(self, known: KnownTracker) -> None:
        now = self._clock.monotonic()
        if now - self._pulled_everything.get(known.address, -AGAIN_AT_ONCE_S) >= AGAIN_AT_ONCE_S:
            self._pulled_everything[known.address] = now
            self._start(f"pull everything {known.address}", known, self._pull(known, everything=True))

    async def _pull(self, known: KnownTracker, *, everything: bool) -> None:
        line = self.lines.get(known.address)
        if line is None or not line.may_pull:
            return
        mine = everything and await self._has_turn()
        try:
            trusted = known.standing.is_trusted
            async with asyncio.timeout(LONGEST_PULL_S if trusted else LONGEST_PULL_OF_LEARNT_S):
                new = await line.pull(known.tracker, everything=everything, trusted=trusted)
        except Busy as error:
            line.put_off(error.wait_s)
            return
        finally:
            if mine:
                self._turn.release()
        self._answered(known, line)
        if new:
            known.useful = True
            log.info("rows fetched", tracker=short(known.tracker), rows=new)

    async def _has_turn(self) -> bool:
        """Wait for the turn, though not for ever; whether it was given."""
        try:
            async with asyncio.timeout(TURN_WITHIN_S):
                await self._turn.acquire()
        except TimeoutError:
            return False
        return True

    def _answered(self, known: KnownTracker, line: SyncLine) -> None:
        self.book.answered(known.address, self._clock.now())
        if line.started is not None:
            self.book.runs_since(known.address, line.started)

    def _start(self, name: str, known: KnownTracker | None, work: Coroutine[Any, Any, None]) -> None:
        """Begin one piece of work unless the same is under way."""
        if name in self._tasks:
            work.close()
            return
        task = asyncio.create_task(self._supervised(known, work), name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _supervised(self, known: KnownTracker | None, work: Coroutine[Any, Any, None]) -> None:
        try:
            with one_look("a conversation with a tracker"):
                await work
        except (AxonError, OSError) as error:  # TimeoutError is an OSError
            if known is None:
                return
            lived = known.lives
            if isinstance(error, PeerMisbehaved):
                self.book.distrust(known.address, self._clock.now())
            else:
                self.book.failed(known.address, self._clock.now())
            with suppress(KeyError):
                self.lines[known.address].give_up()
            if lived:
                reason = error.in_a_line if isinstance(error, AxonError) else "too slow"
                level = log.warning if isinstance(error, PeerMisbehaved) else log.info
                level("tracker lost", at=known.address.partition("#")[0], reason=reason)
