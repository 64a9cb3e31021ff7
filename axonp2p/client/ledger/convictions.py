"""Convictions on their way to a tracker, in the background: with their evidence, and the client's word on them.

What no tracker has yet stands in the client's book of trust, so it outlives the job, and the program: every job of this
client begins and ends with a look at what is left there. Trackers pass on to each other what one of them takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from types import TracebackType
from typing import Self

from axonp2p.client.storage.trust_book import TrustBook
from axonp2p.errors import AxonError
from axonp2p.ledger.ledger_client import hand_in_voiding
from axonp2p.ledger.voiding import VOIDING_LIMIT, VoidingHandedIn
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.wire.codec import decode_as

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
LAST_TRIES = 3
"""So often, at the end of a job, no tracker may answer; then a later job hands in what is left."""

REFUSED_BY = 2
"""So many trackers have to say that they will never take one, before it is taken out of the book."""

log = get_logger(__name__)


class Convictions:
    """Hands in what the book holds. Use it in an `async with`; `settle` at its end."""

    def __init__(self, book: TrustBook, trackers: TrackerLines) -> None:
        self._book = book
        self._trackers = trackers
        self._refused: set[bytes] = set()
        """What one tracker did not take, and there was no other to ask, in this job."""
        self._news = asyncio.Event()
        self._settling = asyncio.Event()
        self._task = asyncio.create_task(self._hand_in_again_and_again(), name="convictions")
        self.nudge()  # what an earlier job has left

    def nudge(self) -> None:
        """There is a new one in the book."""
        self._news.set()

    async def settle(self, seconds: float) -> None:
        """Hand in what is left, in so many seconds at most, and with a few tries."""
        self._settling.set()
        self.nudge()
        await asyncio.wait([self._task], timeout=seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _hand_in_again_and_again(self) -> None:
        pause, tries = FIRST_PAUSE_S, 0
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                with one_look("handing in convictions"):
                    done = await self._hand_in_all()
            except AxonError as error:
                log.warning("convictions not handed in", reason=error.in_a_line)
                done = False
            tries += self._settling.is_set()
            if self._settling.is_set() and (done or tries >= LAST_TRIES) and not self._news.is_set():
                return
            if done:
                pause = FIRST_PAUSE_S
                continue
            self._news.set()
            await self._unless_settling(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _hand_in_all(self) -> bool:
        """Whether nothing is left. Raises what no tracker takes for now."""
        for data in await asyncio.to_thread(self._book.convictions):
            if data not in self._refused and await self._is_settled(decode_as(data, VoidingHandedIn, VOIDING_LIMIT)):
                await asyncio.to_thread(self._book.handed_in, data)
            else:
                self._refused.add(data)
        return True

    async def _is_settled(self, handed_in: VoidingHandedIn) -> bool:
        """Whether a tracker took it, or `REFUSED_BY` of them will not: one, which may lie, is not enough."""
        hand_in = functools.partial(hand_in_voiding, voiding=handed_in)
        first, kept = await self._trackers.first(hand_in)
        others = iter([line for line in self._trackers.in_order() if line is not first])
        refused = 0
        while True:
            if not kept.reason:
                log.info("conviction handed in", new=kept.new)
                return True
            refused += 1
            log.warning("conviction not taken", trackers=refused, reason=kept.reason)
            if refused >= REFUSED_BY:
                return True
            for line in others:
                with contextlib.suppress(AxonError):
                    kept = await self._trackers.ask(line, hand_in)
                    break
            else:
                return False  # a later job asks again

    async def _unless_settling(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._settling.wait()
            await asyncio.sleep(FIRST_PAUSE_S)
        except TimeoutError:
            return
