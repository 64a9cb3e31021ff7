"""Carry each receipt to the tracker that gave its reservation, until it is kept there."""

from __future__ import annotations

import asyncio

from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.logs import get_logger
from axonp2p.transport.http_caller import HttpCaller
from peer_daemon.receipts_book import ReceiptsBook

log = get_logger(__name__)


class ReceiptsCourier:
    """One supervised task, `run`; `nudge` sends it on its way (after an announce, at the end of a lease)."""

    def __init__(self, book: ReceiptsBook) -> None:
        self._book = book
        self._trackers: dict[PeerId, HttpCaller] = {}
        self._nudged = asyncio.Event()

    def reached(self, tracker: PeerId, caller: HttpCaller) -> None:
        """This tracker answered on this line: there may be receipts for it."""
        self._trackers[tracker] = caller
        self.nudge()

    def nudge(self) -> None:
        """There may be something to hand in."""
        self._nudged.set()

    async def run(self) -> None:
        """Hand in at every nudge, until cancelled. What does not succeed waits for the next nudge."""
        while True:
            await self._nudged.wait()
            self._nudged.clear()
            await self.hand_in_all()

    async def hand_in_all(self) -> None:
        """Hand in everything that waits for a tracker that we have reached; the rest goes on waiting."""
        for tracker, caller in list(self._trackers.items()):
            try:
                await self._hand_in(tracker, caller)
            except AxonError as error:
                log.warning("receipts not handed in", tracker=caller.called, reason=error.message)

    async def _hand_in(self, tracker: PeerId, caller: HttpCaller) -> None:
        while waiting := await asyncio.to_thread(self._book.waiting, tracker):
            kept = await hand_in(caller, [one.doubly for one in waiting])
            await asyncio.to_thread(self._book.handed_in, waiting, kept.refused)
            log.info("receipts handed in", receipts=len(waiting), refused=len(kept.refused))
