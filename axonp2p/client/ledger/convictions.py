"""Convictions on their way to a tracker, in the background: with their evidence, and the client's word on them.

A conviction that no tracker has yet stands in the client's book of trust, so it outlives the job, and the program:
every job of this client begins and ends with a look at what is left there. Trackers pass on to each other what one of
them takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools

from axonp2p.client.ledger.delivery import Delivery
from axonp2p.client.storage.trust_book import TrustBook
from axonp2p.errors import AxonError
from axonp2p.ledger.ledger_client import hand_in_voiding
from axonp2p.ledger.voiding import VOIDING_LIMIT, VoidingHandedIn
from axonp2p.logs import get_logger
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.wire.codec import decode_as

REFUSED_BY = 2
"""So many trackers have to say that they will never take one, before it is taken out of the book."""

log = get_logger(__name__)


class Convictions(Delivery):
    """Hands in what the book holds. Use it in an `async with`; `settle` at its end."""

    def __init__(self, book: TrustBook, trackers: TrackerLines) -> None:
        super().__init__("handing in convictions", self._hand_in_all)
        self._book = book
        self._trackers = trackers
        self._refused: set[bytes] = set()
        """The convictions that one tracker did not take, and there was no other to ask, in this job."""
        self.news()  # what an earlier job has left

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
