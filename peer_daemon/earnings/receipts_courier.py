"""Carry each receipt to the tracker that gave its reservation and to another one, until a log is shown to have it.

A client may reserve at a tracker of its own, which takes receipts and forgets them, or refuses them. So what the issuer
says settles nothing: a receipt is settled once a tracker of the settings, other than the issuer, proves that it stands
in its log. Where the issuer is the only one of them that answers, its own proof has to do; where no tracker is in
the settings, that of any tracker but the issuer, or of the issuer when nobody else is known.
"""

from __future__ import annotations

import asyncio

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.ledger_client import hand_in
from axonp2p.ledger.log_client import history
from axonp2p.ledger.receipt import receipt_batch_of
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.codec import encode
from peer_daemon.earnings.receipts_book import ReceiptsBook, Waiting

log = get_logger(__name__)

AGAIN_S = 20.0
"""How often what could not be handed in is tried again."""
PROVED_AFTER_S = 1.5
"""A tracker shows a head for a second: what it took just now is under the next one."""
PROVED_WITHIN_S = 60.0
"""A tracker that took a receipt and does not prove it within this time is not waited for: another one gets it too."""
MOST_PAGES = 10
"""Of a hundred entries about this peer, newest first, that one tracker is asked for in one go."""


class ReceiptsCourier:
    """One supervised task, `run`; `nudge` sends it on its way (after an announce, at the end of a lease)."""

    def __init__(self, book: ReceiptsBook, lines: TrackerLines, own: PeerId, clock: Clock) -> None:
        self._book = book
        self._lines = lines
        self._own = own
        self._clock = clock
        self._took = False
        """Whether somebody took something in the last go, which may be proved soon."""
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        """There may be something to hand in."""
        self._nudged.set()

    async def run(self) -> None:
        """Hand in at every nudge, and what did not succeed again and again, until cancelled."""
        done = False
        while True:
            try:
                async with asyncio.timeout(None if done else PROVED_AFTER_S if self._took else AGAIN_S):
                    await self._nudged.wait()
            except TimeoutError:
                pass
            self._nudged.clear()
            done = await self.hand_in_all()

    async def hand_in_all(self) -> bool:
        """Hand in everything that somebody takes, and ask for proofs; whether nothing is left."""
        self._took = False
        try:
            with one_look("handing receipts in"):
                lines, configured = self._lines_by_tracker(), self._configured()
                for issuer in await asyncio.to_thread(self._book.issuers):
                    await self._hand_in(issuer, lines, configured)
                for tracker, line in lines.items():
                    while await self._prove(line, tracker, configured or frozenset(lines)):
                        pass
                await asyncio.to_thread(self._book.give_up, configured)
                return not await asyncio.to_thread(self._book.issuers)
        except AxonError as error:
            log.warning("receipts not handed in", reason=error.in_a_line)
            return False

    async def _hand_in(self, issuer: PeerId, lines: dict[PeerId, HttpCaller], configured: frozenset[PeerId]) -> None:
        """To the issuer, and to the first other one that takes them."""
        if line := lines.get(issuer):
            await self._give(line, issuer, issuer)
        others = [tracker for tracker in lines if tracker != issuer]
        others.sort(key=lambda tracker: tracker not in configured)
        since = self._clock.now() - PROVED_WITHIN_S
        for tracker in others:
            if not await asyncio.to_thread(self._book.lacks_other, issuer, since):
                return
            await self._give(lines[tracker], tracker, issuer)

    async def _prove(self, line: HttpCaller, tracker: PeerId, deciding: frozenset[PeerId]) -> bool:
        """Settle what this tracker proves to have, as far as its proof counts; whether it was anything."""
        waiting = await asyncio.to_thread(self._book.unproved, tracker)
        open_ = {encode(one.doubly): one for one in waiting if tracker in deciding and one.issuer != tracker}
        if deciding == {tracker}:
            open_ = {encode(one.doubly): one for one in waiting}
        before, proved = 0, list[Waiting]()
        try:
            for _ in range(MOST_PAGES if open_ else 0):
                told = await self._lines.ask(line, lambda one: history(one, self._own, before, prove=True))
                proved += [found for one in told.entries if (found := open_.pop(one.entry, None))]
                if not open_ or not told.entries or not (before := told.entries[-1].number):
                    break
        except AxonError as error:
            log.debug("receipts not proved", tracker=line.called, reason=error.in_a_line)
        if proved:
            await asyncio.to_thread(self._book.settle, proved, tracker)
            log.info("receipts proved", tracker=line.called, receipts=len(proved))
        return bool(proved)

    def _configured(self) -> frozenset[PeerId]:
        """The trackers of the settings that are not away, as far as they ever said who they are."""
        health = self._lines.health
        states = (health.state(address) for address in health.addresses if not health.is_learnt(address))
        return frozenset(state.tracker for state in states if state.tracker and not state.failures)

    def _lines_by_tracker(self) -> dict[PeerId, HttpCaller]:
        """The trackers whose id is known and that may be asked now, best first."""
        health, now = self._lines.health, self._clock.now()
        found: dict[PeerId, HttpCaller] = {}
        for line in self._lines.in_order():
            address = str(line.address)
            if (tracker := health.state(address).tracker) and health.may_be_asked(address, now):
                found.setdefault(tracker, line)
        return found

    async def _give(self, line: HttpCaller, tracker: PeerId, issuer: PeerId) -> None:
        """Hand in all receipts for reservations of `issuer` of which this tracker has not heard."""
        try:
            while waiting := await asyncio.to_thread(self._book.waiting, issuer, tracker):
                # The issuer gets its own token too: it may have lost its disk.
                batch = receipt_batch_of((one.doubly, one.token) for one in waiting)
                kept = await self._lines.ask(line, lambda one: hand_in(one, batch.receipts, batch.tokens))  # noqa: B023
                handed_in = waiting[: len(batch.receipts)]
                await asyncio.to_thread(self._book.heard, handed_in, tracker, kept.refused)
                self._took = self._took or len(kept.refused) < len(handed_in)
                log.info("receipts handed in", tracker=line.called, receipts=len(handed_in), refused=len(kept.refused))
        except AxonError as error:
            log.warning("receipts not handed in", tracker=line.called, reason=error.message)
