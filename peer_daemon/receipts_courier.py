"""Carry receipts to a tracker until one has them all."""

from __future__ import annotations

import asyncio

from axonp2p.errors import AxonError
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.logs import get_logger
from axonp2p.table.tracker_client import first_answer
from axonp2p.transport.http_caller import HttpCaller
from peer_daemon.receipts_book import ReceiptsBook

log = get_logger(__name__)


class ReceiptsCourier:
    """One supervised task, `run`; `nudge` sends it on its way (after an announce, at the end of a lease)."""

    def __init__(self, book: ReceiptsBook, trackers: list[HttpCaller]) -> None:
        self._book = book
        self._trackers = trackers
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        """There may be something to hand in, or somebody to hand it to."""
        self._nudged.set()

    async def run(self) -> None:
        """Hand in at every nudge, until cancelled. What does not succeed waits for the next nudge."""
        while True:
            await self._nudged.wait()
            self._nudged.clear()
            try:
                await self.hand_in_all()
            except AxonError as error:
                log.warning("receipts not handed in", reason=error.message)

    async def hand_in_all(self) -> None:
        """Hand in everything that waits. Raises what the trackers answer."""
        while waiting := await asyncio.to_thread(self._book.waiting):
            receipts = [one.doubly for one in waiting]
            kept = await first_answer(self._trackers, lambda caller: hand_in(caller, receipts))  # noqa: B023 (awaited here)
            await asyncio.to_thread(self._book.handed_in, waiting, kept.refused)
            log.info("receipts handed in", receipts=len(waiting), refused=len(kept.refused))
