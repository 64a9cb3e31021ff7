"""Collects what the operator's page and the metrics tell from the parts of a tracker, once a minute and when asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import axonp2p
from axonp2p.clock import Clock
from axonp2p.errors import AxonError
from axonp2p.transport.relay.admission import Admission
from tracker.api.metrics import Metrics
from tracker.api.status import OtherState, TrackerStatus
from tracker.ledger.ledger_keeper import LedgerKeeper
from tracker.page.overview import SAMPLE_S, DayOfSamples, Overview, RelayNow, RequestCounts, Sample
from tracker.storage.database import Database
from tracker.storage.disk import Disk, look_at_disk
from tracker.table.table_index import TableIndex

_ANNOUNCES, _QUERIES = "/v1/announce", "/v1/query"


@dataclass(frozen=True)
class OverviewSources:
    """The parts of the tracker that the overview looks at."""

    index: TableIndex
    ledger: LedgerKeeper
    database: Database
    metrics: Metrics
    relay: Admission | None
    status: Callable[[], TrackerStatus]
    """Of this tracker and the others."""
    trouble: Callable[[], str]
    hosted_jobs: Callable[[], int]


class Recorder:
    """One tracker's. `run` is a supervised task."""

    def __init__(self, parts: OverviewSources, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock
        self._started = clock.now()
        self._day = DayOfSamples()
        self._disk = Disk()
        self._convictions = 0
        parts.metrics.watch_operator(lambda: self._disk, lambda: self._convictions, parts.trouble, self._lag)
        parts.metrics.watch_peers(lambda: parts.index.counts(clock.now()))
        parts.metrics.watch_trackers(self._lives)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._look_at_disk()
            self._day.add(self._sample())
            await asyncio.sleep(SAMPLE_S)

    async def overview(self) -> Overview:
        """As it is now. Raises `Busy` while the tracker starts."""
        await self._look_at_disk()
        parts, now = self._parts, self._clock.now()
        status, metrics = parts.status(), parts.metrics
        mean, slow = metrics.answer_ms()
        relay = None
        if parts.relay is not None:
            totals = parts.relay.totals
            relay = RelayNow(parts.relay.peers, len(parts.relay.streams), totals.bytes, totals.refused.total())
        return Overview(
            tracker=status.tracker,
            address=status.address,
            version=axonp2p.__version__,
            started=self._started,
            now=now,
            trouble=parts.trouble(),
            peers=parts.index.counts(now),
            traffic=RequestCounts(metrics.by_path(), dict(metrics.refused), mean, slow),
            trackers=status.trackers,
            receipts=parts.ledger.receipts,
            convictions=self._convictions,
            disk=self._disk,
            relay=relay,
            hosted_jobs=parts.hosted_jobs(),
            samples=(*self._day.all, self._sample()),
        )

    def _lag(self) -> float:
        """The longest to another tracker that lives; 0 for none."""
        lags = (other.lag_s for other in self._others() if other.lives and other.lag_s is not None)
        return max(lags, default=0.0)

    def _lives(self) -> tuple[int, int]:
        others = self._others()
        return sum(other.lives for other in others), len(others)

    def _others(self) -> list[OtherState]:
        try:
            return self._parts.status().trackers
        except AxonError:
            return []  # it starts just now

    def _sample(self) -> Sample:
        parts, now = self._parts, self._clock.now()
        asked = parts.metrics.by_path()
        return Sample(
            at=now,
            alive=parts.index.alive(now),
            announces=asked.get(_ANNOUNCES, 0),
            queries=asked.get(_QUERIES, 0),
            refusals=parts.metrics.refused.total(),
            receipts=parts.ledger.receipts,
            relay_bytes=parts.relay.totals.bytes if parts.relay is not None else 0,
        )

    async def _look_at_disk(self) -> None:
        folder = self._parts.database.folder
        self._disk = await asyncio.to_thread(look_at_disk, folder, self._disk)
        with suppress(AxonError):  # a disk that cannot be read is told as trouble; what was counted last stays
            self._convictions = await self._parts.ledger.convictions()
