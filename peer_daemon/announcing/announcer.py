"""Keep this peer's row with its trackers and the DHT: announce, renew, tell what changed, withdraw."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.records import LONGEST_LIFE_S, Announced
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from peer_daemon.announcing.announce_rota import EVERY_S, ChangeLimit, Rota, again_in, ping_in
from peer_daemon.announcing.row_sender import Given, RowSender
from peer_daemon.announcing.row_writer import RowWriter, Written

log = get_logger(__name__)

LOOKS_AFTER_S = (1.0, 4.0, 10.0, 30.0)
"""A tracker that has not called us back yet is asked so soon whether it has: three seconds decide it, as a rule."""
_WITHDRAW_WITHIN_S = 3
_REFUSED_WAIT_S = 60.0
"""A tracker that is well but does not want our row is asked again after so long."""


@dataclass(frozen=True)
class Hearers:
    """The listeners, and what each is told."""

    announced: Callable[[HttpCaller, Given], Awaitable[None]]
    """Of every yes, and whose it was."""
    written: Callable[[Written], None]
    """Of every new row."""
    lost: Callable[[str], None]
    """Of a tracker that had the row and does not answer any more."""


class Announcer:
    """One supervised task, `run`."""

    def __init__(
        self, lines: TrackerLines, rota: Rota, rows: RowWriter, sender: RowSender, clock: Clock, hearers: Hearers
    ) -> None:
        self._lines = lines
        self._sender = sender
        self._rota = rota
        self._rows = rows
        self._clock = clock
        self._hearers = hearers
        self._again_in: dict[str, float] = {}
        self._clock_off: set[str] = set()
        self._troubles: dict[str, str] = {}
        self._looks: dict[str, int] = {}
        self._news = False
        self._said = False
        self._changes = ChangeLimit()
        self._woken = asyncio.Event()
        self._told = asyncio.Event()

    def changed(self) -> asyncio.Event:
        """The row says something new: announced at once. The event is set when the trackers were told, or are away."""
        self._news = True
        self._woken.set()
        return self._told

    def others_say(self) -> None:
        """Others say something new of this peer: announced at once, if that does not happen too often."""
        self._said = True
        self._woken.set()

    @property
    def told(self) -> list[str]:
        """Addresses of the trackers that have the row."""
        return self._rota.told

    def trouble(self, address: str) -> str:
        """Why the tracker there did not take the row the last time; empty when it did, or was not asked."""
        return self._troubles.get(address, "")

    def woken(self) -> None:
        """Another tracker is known: it may be one to announce to."""
        self._woken.set()

    async def run(self) -> None:
        """Announce until cancelled."""
        while True:
            self._woken.clear()
            news, self._news = self._news, False
            told, self._told = self._told, asyncio.Event()
            news |= self._said and self._changes.take(self._clock.now())
            if news:
                self._rota.changed()
            await self._round(news)
            told.set()
            await self._look_whether_they_live()
            now = self._clock.now()
            written = self._rows.newest.at if self._rows.newest else now
            try:
                pause = min(self._rota.wait(now), max(0.0, written + self._interval - now))
                async with asyncio.timeout(min(pause, self._changes.wait) if self._said else pause):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def withdraw(self, written: Written) -> None:
        """Give this row, which takes back all others, to every tracker that may have one; gives up after seconds.

        When none of those can be reached, the others are told: they may have the row from them.
        """
        lines = self._by_address()
        told = self._rota.told
        heard = await asyncio.gather(*(self._withdraw(lines[address], written) for address in told))
        if told and not any(heard):
            await asyncio.gather(*(self._withdraw(lines[each], written) for each in lines if each not in told))

    @property
    def _interval(self) -> float:
        """Seconds between two rows: the longest that the trackers which have it want."""
        return max((self._again_in[address] for address in self._rota.chosen), default=EVERY_S)

    async def _round(self, news: bool) -> None:
        now = self._clock.now()
        due = self._rota.due(now)
        newest = self._rows.newest
        # A row that was not long ago goes to a tracker that takes another's place, or is back, as it is.
        fresh = newest is not None and not news and 0 <= now - newest.at < self._interval / 2
        if newest is None or not fresh:
            life = min(2 * self._interval, LONGEST_LIFE_S)
            self._said = False
            newest = await self._rows.renew(life, self._rota.chosen)
            self._hearers.written(newest)
        lines = self._by_address()
        self._sender.keep_only(self._lines.health.addresses)
        await asyncio.gather(*(self._announce(lines[address], newest) for address in due))

    def _by_address(self) -> dict[str, HttpCaller]:
        return {str(line.address): line for line in self._lines.in_order()}

    async def _announce(self, line: HttpCaller, written: Written) -> None:
        address, health = str(line.address), self._lines.health
        was_away = health.is_away(address)
        started = self._clock.now()
        try:
            with one_look("an announce"):
                given = await self._lines.ask(line, lambda caller: self._sender.give(caller, written.signed))
                await self._heard(line, given, written, (started + self._clock.now()) / 2, was_away=was_away)
        except AxonError as error:
            self._lose(address)
            self._troubles = {known: self._troubles.get(known, "") for known in health.addresses}
            self._troubles[address] = error.in_a_line
            if address in health.addresses and health.may_be_asked(address, self._clock.now()):
                health.busy(address, _REFUSED_WAIT_S, self._clock.now(), 0.0)
            if not was_away:
                more = {"fix": error.fix} if error.fix else {}
                log.warning("not announced", tracker=line.called, reason=error.message, cause=error.cause, **more)

    async def _heard(self, line: HttpCaller, given: Given, written: Written, asked: float, *, was_away: bool) -> None:
        """A tracker has the row; `asked` is the middle of the question, by our clock."""
        answer = given.answer
        address, health, now = str(line.address), self._lines.health, self._clock.now()
        self._check_clock(line, answer, asked)
        self._troubles.pop(address, None)
        first = address not in self._rota.told
        trusted = not health.is_learnt(address)
        self._again_in[address] = again_in(answer, trusted=trusted)
        wait = min(self._again_after(address, answer), max(1.0, (written.row.expires - now) / 2))
        self._rota.answered(address, wait, now, ping_in(answer, trusted=trusted))
        if address in health.addresses:
            health.answered(address, now, tracker=answer.tracker)
        if self._rows.own.seen(address, answer.seen_from, trusted=trusted):
            self.others_say()
        if first or was_away:
            log.info("announced", tracker=line.called, free=self._rows.own.free, again_in=round(answer.again_in))
        await self._hearers.announced(line, given)

    def _again_after(self, address: str, answer: Announced) -> float:
        """Seconds until this tracker is to hear of us again."""
        looks, usual = self._looks.get(address, 0), self._again_in[address]
        if answer.reached is not None or looks == len(LOOKS_AFTER_S) or self._lines.health.is_learnt(address):
            return usual
        self._looks[address] = looks + 1
        return min(usual, LOOKS_AFTER_S[looks])

    async def _look_whether_they_live(self) -> None:
        lines = self._by_address()
        await asyncio.gather(*(self._ping(lines[address]) for address in self._rota.to_ping(self._clock.now())))

    async def _ping(self, line: HttpCaller) -> None:
        address = str(line.address)
        try:
            await self._lines.ask(line, lambda caller: caller.round_trip())
            self._rota.pinged(address, self._clock.now())
        except AxonError as error:
            log.warning("the tracker is gone", tracker=line.called, reason=error.message, cause=error.cause)
            self._lose(address)

    def _lose(self, address: str) -> None:
        if address in self._rota.chosen:
            self._hearers.lost(address)
        self._rota.failed(address)

    async def _withdraw(self, line: HttpCaller, written: Written) -> bool:
        try:
            async with asyncio.timeout(_WITHDRAW_WITHIN_S):
                await self._sender.give(line, written.signed)
            log.info("withdrawn", tracker=line.called)
            return True
        except (AxonError, TimeoutError) as error:
            reason = error.message if isinstance(error, AxonError) else "no answer in time"
            log.warning("not withdrawn", tracker=line.called, reason=reason)
            return False

    def _check_clock(self, line: HttpCaller, answer: Announced, here: float) -> None:
        off = here - answer.time
        if abs(off) <= CLOCK_TOLERANCE_S:
            self._clock_off.discard(line.called)
        elif line.called not in self._clock_off:
            self._clock_off.add(line.called)
            log.warning(
                f"AX-411 this computer's clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the tracker's",
                tracker=line.called,
                fix="timedatectl set-ntp true",
            )
