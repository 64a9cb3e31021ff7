"""Telling trackers that a peer which they show did not answer: in the background, once for each peer, and never waited
for by a job."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.identity.keys import PrivateKey
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.logs import get_logger
from axonp2p.supervision import cancel_and_wait, in_background
from axonp2p.table.tracker_client import report
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.http.http_caller import HttpCaller

log = get_logger(__name__)

CLOSE_S = 1.0
"""How long reports that are under way may take at the end."""


class Reporter:
    """Reports of one job. `close()` it at the end."""

    def __init__(self, key: PrivateKey, trackers: TrackerLines, clock: Clock) -> None:
        self._key = key
        self._trackers = trackers
        self._clock = clock
        self._reported: set[PeerId] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def report(self, peer: PeerId, sources: Collection[str]) -> None:
        """The peer did not answer; `sources` (`SeenRow.sources`) showed it. Does not wait."""
        if peer in self._reported:
            return
        self._reported.add(peer)
        for line in self._trackers.in_order():
            if line.called in sources:
                in_background(self._tasks, self._tell(line, peer))

    async def close(self) -> None:
        """Give reports that are under way a moment, then drop them: each tracker finds out by itself as well."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        await cancel_and_wait(*tasks)

    async def _tell(self, line: HttpCaller, peer: PeerId) -> None:
        try:
            await self._trackers.ask(line, lambda caller: report(caller, self._key, peer, now=self._clock.now()))
        except AxonError as error:
            log.debug("not reported", peer=short(peer), tracker=line.called, reason=error.message)
