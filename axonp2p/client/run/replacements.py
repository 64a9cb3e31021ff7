"""Peers in place of those that a job has lost: looked for, hired and given the bundle while the others go on."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable

from axonp2p.client.events.events import Event, PeersFound
from axonp2p.client.leasing.hiring import Hiring, Means, PeerRequest
from axonp2p.client.leasing.lease import Lease
from axonp2p.client.run.crew import LeasedCrew
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_record import PeerRecord
from axonp2p.errors import AxonError
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.wire.ranks import MOST_RANKS

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 120.0
"""Between two looks at the table while nobody fits; doubled each time."""
TOGETHER_S = 1.0
"""Lines that are lost within so long were lost together."""
MOST_LOSSES = 2
"""A peer that was lost so often in one job is not asked again."""

log = get_logger(__name__)


class Replacements:
    """Keeps a crew at the size that the job wishes for. `run` goes on until it is cancelled."""

    def __init__(
        self,
        means: Means,
        request: PeerRequest,
        crew: LeasedCrew,
        journal: JobJournal,
        *,
        deliver: Callable[[int, Lease], Awaitable[str]],
    ) -> None:
        """`deliver` sends a peer the bundle and says why that failed, if it did."""
        self._means = means
        self._request = request
        self._crew = crew
        self._journal = journal
        self._deliver = deliver
        self._refused: Counter[PeerId] = Counter()
        self._found: PeersFound | None = None

    async def run(self) -> None:
        """Hire whenever somebody is missing. A table that does not answer is asked again later."""
        pause = FIRST_PAUSE_S
        while True:
            missing = self._request.wanted - len(self._crew.present)
            if missing <= 0 or self._crew.next_rank + missing > MOST_RANKS:
                self._crew.fewer.clear()
                await self._crew.fewer.wait()
                continue
            if self._crew.cut_off:
                # One relay's death takes several lines at once: too few may be left, and then these are taken again.
                await asyncio.sleep(TOGETHER_S)
                await self._crew.give_back_cut_off()
            came = await self._hire(missing)
            pause = FIRST_PAUSE_S if came else min(2 * pause, LONGEST_PAUSE_S)
            if not came:
                await asyncio.sleep(pause)

    async def fill(self, least: int, seconds: float) -> None:
        """Hire until so many are present, or for so long: also who was cut off and is back by then."""
        pause = FIRST_PAUSE_S
        try:
            async with asyncio.timeout(seconds):
                while (missing := least - len(self._crew.present)) > 0:
                    if not await self._hire(missing):
                        await asyncio.sleep(pause)
                        pause *= 2
        except TimeoutError:
            log.info("not enough peers in time", present=len(self._crew.present), needed=least)

    async def _hire(self, missing: int) -> int:
        """How many came."""
        first = self._crew.next_rank
        request = dataclasses.replace(
            self._request,
            wanted=missing,
            at_least=1,
            present=len(self._crew.present),
            without=self._known(),
            names=self._journal.record.peer_names,
            first_rank=first,
        )
        hiring = Hiring(self._means, request, self._see)
        kept: list[Lease] = []
        try:
            await hiring.hire()
            for lease in hiring.hired:
                rank = self._crew.expect(lease)
                if reason := await self._supply(rank, lease):
                    log.info("a replacement did not take the bundle", peer=lease.name, reason=reason)
                    self._refused[lease.row.peer] += 1
                    continue
                kept.append(lease)
                await self._let_in(rank, lease, hiring)
        except AxonError as error:
            log.info("no replacement", reason=error.in_a_line)
        finally:
            await asyncio.gather(*(lease.end() for lease in hiring.hired if lease not in kept))
        return len(kept)

    async def _supply(self, rank: int, lease: Lease) -> str:
        """Why it did not take the bundle; empty when it did."""
        taken = False
        try:
            reason = await self._deliver(rank, lease)
            taken = not reason
        finally:
            if not taken:
                self._crew.turn_away(rank)
        return reason

    async def _let_in(self, rank: int, lease: Lease, hiring: Hiring) -> None:
        seconds = hiring.distances[lease.row.peer].seconds or 0.0
        self._crew.add(rank)
        self._journal.joined_late(
            PeerRecord(name=lease.name, peer=lease.row.peer, rank=rank, reservation=lease.promise.uuid, rtt_s=seconds)
        )
        await self._crew.let_in(rank)

    def _known(self) -> frozenset[PeerId]:
        """The peers that are not asked: those here, lost too often, or that too often did not take the bundle."""
        present = self._crew.present
        times = Counter(lease.row.peer for rank, lease in self._crew.leases.items() if rank not in present)
        lost = {peer for peer, count in times.items() if count >= MOST_LOSSES}
        here = {lease.row.peer for rank, lease in self._crew.leases.items() if rank in present}
        refused = {peer for peer, count in self._refused.items() if count >= MOST_LOSSES}
        return frozenset(here | lost | refused)

    def _see(self, event: Event) -> None:
        if isinstance(event, PeersFound):  # what the table shows again and again is told once
            if event == self._found:
                return
            self._found = event
        self._journal.tell(event)
