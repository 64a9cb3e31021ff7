"""Open lines to the trackers that are known, asked in the order of their health; what each call shows is remembered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from axonp2p.clock import Clock
from axonp2p.errors import AxonError, Busy, Refused, TrackerUnreachable
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, one_look
from axonp2p.table.asking_order import NEXT_AFTER_S
from axonp2p.table.tracker_client import TrackersTold, line_to
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.transport.address import PinnedAddress
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller

log = get_logger(__name__)

T = TypeVar("T")
Ask = Callable[[HttpCaller], Awaitable[T]]


class TrackerLines:
    """Lines are opened when they are first used; `close()` closes them, and a later call opens them again."""

    def __init__(self, health: TrackerHealth, clock: Clock, chance: random.Random) -> None:
        self.health = health
        self.dials = DialPolicy(tuple)
        """Which addresses of learnt trackers may be dialled; the program that makes the lines knows its own better."""
        self._clock = clock
        self._chance = chance
        self._lines: dict[str, HttpCaller] = {}

    def in_order(self) -> list[HttpCaller]:
        """All trackers, the one to ask first before the others."""
        return [self._line(address) for address in self.health.order(self._clock.now(), self._chance)]

    def trusted(self) -> list[HttpCaller]:
        """The same without those that are only learnt: for all that is more than finding peers.

        A user that named no tracker in the settings has nobody else, and gets them all: peers and others then decide
        for themselves what such a tracker's word is worth.
        """
        lines = self.in_order()
        return [line for line in lines if not self.health.is_learnt(str(line.address))] or lines

    def learn(self, addresses: Iterable[str]) -> None:
        """Somebody names these trackers."""
        for address in addresses:
            if self.health.learn(address, self._clock.now()):
                log.debug("tracker learnt", address=address)

    def heard(self, line: HttpCaller, told: TrackersTold) -> bool:
        """The tracker behind `line` says which others there are; whether that is anything new."""
        address, now = str(line.address), self._clock.now()
        news = bool(told.own) and self.health.hear_vouching(address, told.own, told.vouching, now)
        for row in told.rows:
            news |= self.health.learn(row.address, now, row.tracker)
        return news

    async def ask(self, line: HttpCaller, ask: Ask[T]) -> T:
        """Ask one tracker, and remember how it went. Raises what `ask` raises."""
        began = self._clock.monotonic()
        try:
            with one_look("a question to a tracker"):
                answer = await ask(line)
        except Busy as error:
            wait_s = error.wait_s
            self._mark(line, lambda address, now: self.health.busy(address, wait_s, now, self._chance.random()))
            raise
        except Refused:
            self._mark(line, self.health.answered)
            raise
        except AxonError:
            self._mark(line, self._failed)
            raise
        except asyncio.CancelledError:
            # Another tracker was faster, or nobody waits any more: who took long is asked later the next time.
            if self._clock.monotonic() - began > NEXT_AFTER_S:
                self._mark(line, self._failed)
            raise
        seconds = self._clock.monotonic() - began
        self._mark(line, lambda address, now: self.health.answered(address, now, seconds))
        return answer

    async def first(
        self, ask: Ask[T], *, next_after_s: float = NEXT_AFTER_S, before: str = "", trusted: bool = False
    ) -> tuple[HttpCaller, T]:
        """The first answer, and the tracker that gave it. The next tracker is asked when one fails or is slow.

        The tracker with the address `before`, if it is known and not away, is asked before all others; those that are
        only learnt not at all with `trusted`, where there are others.
        Raises `Refused` when a tracker said no and none said yes, else `TrackerUnreachable` naming each with its
        reason.
        """
        among = self.trusted() if trusted else self.in_order()
        waiting = sorted(among, key=lambda line: str(line.address) != before or self._is_away(before))
        running: dict[asyncio.Task[T], HttpCaller] = {}
        failures: list[tuple[HttpCaller, AxonError]] = []
        try:
            while waiting or running:
                if waiting:
                    line = waiting.pop(0)
                    running[asyncio.create_task(self.ask(line, ask))] = line
                timeout = next_after_s if waiting else None
                done, _ = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    line = running.pop(task)
                    try:
                        return line, task.result()
                    except AxonError as error:
                        failures.append((line, error))
        finally:
            await cancel_and_wait(*running)
        raise why_none(failures)

    async def close(self) -> None:
        """Close every line."""
        lines, self._lines = list(self._lines.values()), {}
        await asyncio.gather(*(line.close() for line in lines))

    def policy_of(self, address: str) -> DialPolicy | None:
        """Which addresses may be dialled for that tracker; None: any, as its name comes from the owner."""
        return self.dials if self.health.is_learnt(address) else None

    def _line(self, address: str) -> HttpCaller:
        if address not in self._lines:
            self._lines[address] = line_to(PinnedAddress.parse(address), self.policy_of(address))
        return self._lines[address]

    def _is_away(self, address: str) -> bool:
        return address not in self.health.addresses or self.health.is_away(address)

    def _failed(self, address: str, now: float) -> None:
        self.health.failed(address, now, self._chance.random())

    def _mark(self, line: HttpCaller, mark: Callable[[str, float], object]) -> None:
        address = str(line.address)
        if address in self.health.addresses:  # it may have been forgotten meanwhile
            mark(address, self._clock.now())


def why_none(failures: Sequence[tuple[HttpCaller, AxonError]]) -> AxonError:
    """The error that says why no tracker gave what was asked for."""
    for _, error in failures:
        if isinstance(error, Refused) and not isinstance(error, Busy):
            return error
    if not failures:
        return TrackerUnreachable("no tracker to ask", fix="name one, as https://HOST:PORT#FINGERPRINT")
    return TrackerUnreachable(
        "no tracker answers" if len(failures) > 1 else "the tracker does not answer",
        cause="; ".join(reason_of(line, error) for line, error in failures),
        fix="check that it runs (there: axon-tracker run), or name another one",
    )


def reason_of(line: HttpCaller, error: AxonError) -> str:
    """Why a tracker gave no answer, naming it."""
    return error.in_a_line if line.called in error.message else f"{line.called}: {error.in_a_line}"
