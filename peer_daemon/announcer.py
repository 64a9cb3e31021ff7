"""Keep this peer's row with its trackers: announce, renew, tell what changed, withdraw."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.files import write_whole
from axonp2p.identity.keys import PrivateKey
from axonp2p.logs import get_logger
from axonp2p.table.records import LONGEST_LIFE_S, Announced, Row
from axonp2p.table.tracker_client import announce
from axonp2p.transport.http_caller import HttpCaller
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.envelope import sign
from peer_daemon.announce_rota import Rota
from peer_daemon.own_row import OwnRow

log = get_logger(__name__)

FIRST_LIFE_S = 600.0
"""How long the first row is valid: no tracker has said yet how often it wants one."""
_WITHDRAW_WITHIN_S = 3


class Sequence:
    """Numbers that only grow, also over restarts: the time in milliseconds, or one more than the last."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._turn = threading.Lock()
        try:
            self._last = int(path.read_text())
        except (OSError, ValueError):
            self._last = 0  # lost: the clock alone keeps it growing

    def next(self) -> int:
        """The next number, kept on disk before it is used. Touches the disk; any number of threads may call."""
        with self._turn:
            self._last = max(self._last + 1, int(self._clock.now() * 1000))
            try:
                write_whole(self._path, str(self._last).encode())
            except OSError as error:
                # A full disk does not silence the peer: the clock alone keeps the numbers growing.
                log.warning("sequence not kept", path=str(self._path), reason=error.strerror)
            return self._last


class Announcer:
    """One supervised task, `run`; `free_slots` wakes it. `heard` is told every yes, and whose."""

    def __init__(
        self,
        key: PrivateKey,
        trackers: list[HttpCaller],
        row: OwnRow,
        sequence: Sequence,
        clock: Clock,
        heard: Callable[[HttpCaller, Announced], Awaitable[None]],
    ) -> None:
        self._key = key
        self._trackers = trackers
        self._row = row
        self._sequence = sequence
        self._clock = clock
        self._heard = heard
        self._rota = Rota(len(trackers))
        self._again_in: dict[int, float] = {}
        self._last_expires = 0
        self._clock_off: set[int] = set()
        self._changed = asyncio.Event()

    def free_slots(self, free: int) -> None:
        """So many slots nobody holds now: announced at once."""
        self._row.free = free
        self._changed.set()

    async def run(self) -> None:
        """Announce until cancelled."""
        while True:
            if self._changed.is_set():
                self._changed.clear()
                self._rota.changed()
            due = self._rota.due(self._clock.monotonic())
            await asyncio.gather(*(self._announce(index) for index in due))
            try:
                async with asyncio.timeout(self._rota.wait(self._clock.monotonic())):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def withdraw(self) -> None:
        """Tell every tracker that may have a row that this peer leaves; gives up after a few seconds."""
        # It must outlive every row that it takes back.
        row = self._row.withdrawing(sequence=await asyncio.to_thread(self._sequence.next), expires=self._last_expires)
        await asyncio.gather(*(self._withdraw(index, row) for index in self._rota.may_know_us()))

    async def _announce(self, index: int) -> None:
        caller = self._trackers[index]
        started = self._clock.now()
        life = self._life(index)
        row = self._row.offering(sequence=await asyncio.to_thread(self._sequence.next), expires=int(started + life))
        self._last_expires = max(self._last_expires, row.expires)
        try:
            answer = await announce(caller, sign(self._key, row))
        except AxonError as error:
            if self._rota.failed(index, self._clock.monotonic(), random.random()):
                log.warning("not announced", tracker=caller.called, reason=error.message, cause=error.cause)
            return
        self._check_clock(index, answer, (started + self._clock.now()) / 2)
        self._again_in[index] = answer.again_in
        first = index not in self._rota.may_know_us()
        was_away = self._rota.answered(index, min(answer.again_in, life / 2), self._clock.monotonic())
        if self._row.seen(index, answer.seen_from):
            self._changed.set()
        if first or was_away:
            log.info("announced", tracker=caller.called, free=self._row.free, again_in=round(answer.again_in))
        await self._heard(caller, answer)

    async def _withdraw(self, index: int, row: Row) -> None:
        caller = self._trackers[index]
        try:
            async with asyncio.timeout(_WITHDRAW_WITHIN_S):
                await announce(caller, sign(self._key, row))
            log.info("withdrawn", tracker=caller.called)
        except (AxonError, TimeoutError) as error:
            reason = error.message if isinstance(error, AxonError) else "no answer in time"
            log.warning("not withdrawn", tracker=caller.called, reason=reason)

    def _life(self, index: int) -> float:
        again_in = self._again_in.get(index)
        return FIRST_LIFE_S if again_in is None else min(2 * again_in, LONGEST_LIFE_S)

    def _check_clock(self, index: int, answer: Announced, here: float) -> None:
        off = here - answer.time
        if abs(off) <= CLOCK_TOLERANCE_S:
            self._clock_off.discard(index)
        elif index not in self._clock_off:
            self._clock_off.add(index)
            log.warning(
                f"AX-411 this computer's clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} the tracker's",
                tracker=self._trackers[index].called,
                fix="timedatectl set-ntp true",
            )
