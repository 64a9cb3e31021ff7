"""Carry each receipt to the tracker that gave its reservation, or to any other when that one cannot take it."""

from __future__ import annotations

import asyncio

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.parcel import parcel_of
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http_caller import HttpCaller
from peer_daemon.receipts_book import ReceiptsBook

log = get_logger(__name__)

PATIENCE_S = 60.0
"""A tracker that is silent for so long does not get its receipts itself: others do, and tell it later."""
AGAIN_S = 20.0
"""How often what could not be handed in is tried again."""


class ReceiptsCourier:
    """One supervised task, `run`; `nudge` sends it on its way (after an announce, at the end of a lease)."""

    def __init__(self, book: ReceiptsBook, lines: TrackerLines, own: PeerId, clock: Clock) -> None:
        self._book = book
        self._lines = lines
        self._own = own
        self._clock = clock
        self._silent_since: dict[PeerId, float] = {}
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        """There may be something to hand in."""
        self._nudged.set()

    async def run(self) -> None:
        """Hand in at every nudge, and what did not succeed again and again, until cancelled."""
        waits = True
        while True:
            try:
                async with asyncio.timeout(AGAIN_S if waits else None):
                    await self._nudged.wait()
            except TimeoutError:
                pass
            self._nudged.clear()
            waits = not await self.hand_in_all()

    async def hand_in_all(self) -> bool:
        """Hand in everything that somebody takes; whether nothing is left."""
        try:
            with one_look("handing in receipts"):
                issuers = await asyncio.to_thread(self._book.issuers)
                for issuer in issuers:
                    await self._hand_in(issuer)
                return not issuers or not await asyncio.to_thread(self._book.issuers)
        except AxonError as error:
            log.warning("receipts not handed in", reason=error.in_a_line)
            return False

    async def _hand_in(self, issuer: PeerId) -> None:
        """To the issuer itself when it answers, else to the first tracker that takes them."""
        lines = self._lines_by_tracker()
        if (line := lines.pop(issuer, None)) and await self._give(line, issuer, issuer):
            self._silent_since.pop(issuer, None)
            return
        now = self._clock.monotonic()
        if issuer != self._own and now - self._silent_since.setdefault(issuer, now) < PATIENCE_S:
            return
        for tracker, other in lines.items():
            if await self._give(other, tracker, issuer) and issuer not in await asyncio.to_thread(self._book.issuers):
                self._silent_since.pop(issuer, None)
                return

    def _lines_by_tracker(self) -> dict[PeerId, HttpCaller]:
        """The trackers whose id is known and that may be asked now, best first."""
        health, now = self._lines.health, self._clock.now()
        found: dict[PeerId, HttpCaller] = {}
        for line in self._lines.in_order():
            address = str(line.address)
            if (tracker := health.state(address).tracker) and health.may_be_asked(address, now):
                found.setdefault(tracker, line)
        return found

    async def _give(self, line: HttpCaller, tracker: PeerId, issuer: PeerId) -> bool:
        """Hand in all receipts for reservations of `issuer`; whether the tracker heard them all."""
        try:
            while waiting := await asyncio.to_thread(self._book.waiting, issuer, tracker):
                # Its own tokens a tracker knows.
                pairs = [(one.doubly, b"" if tracker == issuer else one.token) for one in waiting]
                parcel = parcel_of(pairs)
                kept = await self._lines.ask(line, lambda one: hand_in(one, parcel.receipts, parcel.tokens))  # noqa: B023
                handed_in = waiting[: len(parcel.receipts)]
                await asyncio.to_thread(self._book.handed_in, handed_in, tracker, kept.refused)
                log.info("receipts handed in", tracker=line.called, receipts=len(handed_in), refused=len(kept.refused))
        except AxonError as error:
            log.warning("receipts not handed in", tracker=line.called, reason=error.message)
            return False
        return True
