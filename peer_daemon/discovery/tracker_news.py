"""Hear from a tracker which other trackers there are, and where DHT nodes are; keep it for the next start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.logs import get_logger
from axonp2p.supervision import one_look
from axonp2p.table.tracker_client import dht_contacts, known_trackers
from axonp2p.table.tracker_file import write_health
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.transport.address import split_host_port
from axonp2p.transport.dial_policy import DialPolicy
from axonp2p.transport.http.http_caller import HttpCaller

log = get_logger(__name__)

AGAIN_AFTER_S = 86_400.0
"""A tracker's news is asked for again after so long, where nothing tells that it is different: lists of those that
an operator vouches for end after seven days."""


class TrackerNews:
    """Asks trackers that have just answered. `offer` is told each DHT contact."""

    def __init__(
        self,
        lines: TrackerLines,
        file: Path,
        clock: Clock,
        offer: Callable[[Iterable[str]], None] | None,
        dials: DialPolicy,
    ) -> None:
        """`offer` is None when nobody needs DHT contacts."""
        self._lines = lines
        self._file = file
        self._clock = clock
        self._offer = offer
        self._dials = dials
        self._heard: dict[str, tuple[bytes | None, float]] = {}

    def is_due(self, address: str, news: bytes | None, *, lonely: bool) -> bool:
        """Whether to ask the tracker at `address`, which has just taken the row and gave these four bytes (`Given`).

        A question by HTTPS costs it more than the announce by datagram: it is asked after that only when it has
        something else to tell, or when this peer is lonely in the DHT.
        """
        told, at = self._heard.get(address, (None, 0.0))
        return news is None or lonely or news != told or abs(self._clock.now() - at) > AGAIN_AFTER_S

    async def hear(self, line: HttpCaller, news: bytes | None) -> bool:
        """Ask this one; whether a tracker was learnt. A question that it does not answer is not asked again before its
        next announce."""
        health = self._lines.health
        learnt = False
        try:
            with one_look("a look at a tracker's news"):
                learnt = self._lines.heard(line, await known_trackers(line, now=self._clock.now()))
                if self._offer is not None:
                    contacts = await dht_contacts(line)
                    self._offer(one for one in contacts if self._dials.allows(split_host_port(one)[0]))
            self._heard = {known: told for known, told in self._heard.items() if known in health.addresses}
            self._heard[str(line.address)] = news, self._clock.now()
        except AxonError as error:
            log.debug("no news", tracker=line.called, reason=error.message)
        if learnt:
            log.info("trackers learnt", tracker=line.called, known=len(health.addresses))
            await self.keep()
        return learnt

    async def keep(self) -> None:
        """Write trackers.json."""
        await asyncio.to_thread(write_health, self._file, self._lines.health)
