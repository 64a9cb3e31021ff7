"""The counts of a tracker, for Prometheus and its operator's page; GET /metrics on its own listener, without TLS."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Callable, Iterable, Mapping

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

import axonp2p
from axonp2p.transport.address import join_host_port, split_host_port
from axonp2p.transport.http.plain_server import PlainServer
from axonp2p.transport.relay.admission import Admission
from axonp2p.wire.codec import PROTOCOL_VERSION
from tracker.storage.disk import Disk
from tracker.table.table_index import PeerCounts

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Counters of one tracker, in a registry of their own: two trackers in one process do not meet."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "axon_requests", "Requests by address and HTTP status", ["path", "status"], registry=self.registry
        )
        self.request_seconds = Histogram(
            "axon_request_seconds", "From a request to its answer", ["path"], buckets=_SECONDS, registry=self.registry
        )
        self.refusals = Counter(
            "axon_refusals",
            "Requests that were refused, by the code of docs/errors.md",
            ["code"],
            registry=self.registry,
        )
        self.refused: collections.Counter[str] = collections.Counter()
        """The same, to be read here."""
        self._seconds_of: dict[str, Histogram] = {}
        self._requests_of: dict[tuple[str, int], Counter] = {}
        self._times_of: collections.Counter[tuple[str, int]] = collections.Counter()
        self.commits = Counter("axon_commits", "Commits to the database", registry=self.registry)
        self.changes = Counter("axon_changes", "Changes in those commits", registry=self.registry)
        self.commit_seconds = Histogram(
            "axon_commit_seconds", "One commit, the disk included", buckets=_SECONDS, registry=self.registry
        )
        Gauge("axon_start_time_seconds", "Unix time of the start", registry=self.registry).set(time.time())
        version = {"version": axonp2p.__version__, "protocol": str(PROTOCOL_VERSION)}
        Info("axon_build", "Version of this tracker", registry=self.registry).info(version)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def watch(
        self, *, rows_alive: Callable[[], float], rows: Callable[[], float], receipts: Callable[[], float]
    ) -> None:
        """Read these whenever somebody asks for the metrics."""
        Gauge("axon_rows_alive", "Peers that can be found", registry=self.registry).set_function(rows_alive)
        Gauge("axon_rows", "Rows remembered", registry=self.registry).set_function(rows)
        Gauge("axon_receipts", "Receipts stored", registry=self.registry).set_function(receipts)

    def watch_relay(self, books: Admission) -> None:
        """Read these of the relay, whenever somebody asks."""
        totals = books.totals
        for name, text, read in (
            ("axon_relay_peers", "Peers registered with the relay", lambda: books.peers),
            ("axon_relay_open_streams", "Streams that the relay carries now", lambda: len(books.streams)),
            ("axon_relay_streams", "Streams that the relay has carried", lambda: totals.streams),
            ("axon_relay_bytes", "Bytes that the relay has carried", lambda: totals.bytes),
            ("axon_relay_refusals", "What the relay has refused", lambda: totals.refused.total()),
        ):
            Gauge(name, text, registry=self.registry).set_function(read)

    def watch_hosting(self, running: Callable[[], float]) -> None:
        """Read this too."""
        Gauge("axon_hosted_jobs", "Hosted jobs on which a process works", registry=self.registry).set_function(running)

    def watch_datagrams(self, said: Mapping[str, int]) -> None:
        """Read how many datagrams came, by what became of them."""
        self.registry.register(_Datagrams(said))

    def watch_peers(self, counts: Callable[[], PeerCounts]) -> None:
        """Read these too."""
        self.registry.register(_PeersByState(counts))

    def watch_operator(
        self,
        disk: Callable[[], Disk],
        convictions: Callable[[], int],
        trouble: Callable[[], str],
        lag: Callable[[], float],
    ) -> None:
        """Read these too."""
        for name, text, read in (
            ("axon_database_bytes", "Size of the database", lambda: disk().database),
            ("axon_disk_free_bytes", "Free on the disk of the database", lambda: disk().free),
            ("axon_convictions", "Convictions in the log", convictions),
            ("axon_trouble", "1 while something keeps the tracker from its work", lambda: float(bool(trouble()))),
            ("axon_lag_seconds", "The longest that a row takes to another tracker that answers", lag),
        ):
            Gauge(name, text, registry=self.registry).set_function(read)

    def watch_trackers(self, lives: Callable[[], tuple[int, int]]) -> None:
        """Read how many other trackers answer, and how many are known."""
        Gauge("axon_trackers_alive", "Other trackers that answer", registry=self.registry).set_function(
            lambda: lives()[0]
        )
        Gauge("axon_trackers", "Other trackers that are known", registry=self.registry).set_function(lambda: lives()[1])

    def by_path(self) -> dict[str, int]:
        """How many requests there were for each address."""
        sums: dict[str, int] = {}
        for (path, _), number in self._times_of.items():
            sums[path] = sums.get(path, 0) + number
        return sums

    def answer_ms(self) -> tuple[float, float]:
        """The mean time to an answer, and the bound within which 95 of 100 came; 0 before the first."""
        buckets: dict[float, float] = {}
        seconds = count = 0.0
        for metric in self.request_seconds.collect():
            for sample in metric.samples:
                if sample.name.endswith("_bucket"):
                    bound = float(sample.labels["le"])
                    buckets[bound] = buckets.get(bound, 0.0) + sample.value
                elif sample.name.endswith("_sum"):
                    seconds += sample.value
                elif sample.name.endswith("_count"):
                    count += sample.value
        slow = next((1000 * bound for bound in sorted(buckets) if count and buckets[bound] >= 0.95 * count), 0.0)
        return (1000 * seconds / count if count else 0.0), slow

    def answered(self, path: str, status: int, seconds: float, code: str = "") -> None:
        """A request for `path` was answered after so many seconds; `code`: of a refusal.

        `path` must be one of few: each is remembered.
        """
        self._times_of[path, status] += 1
        if code:
            self.refused[code] += 1
            self.refusals.labels(code).inc()
        times = self._seconds_of.get(path)
        if times is None:
            times = self._seconds_of[path] = self.request_seconds.labels(path)
        times.observe(seconds)
        number = self._requests_of.get((path, status))
        if number is None:
            number = self._requests_of[path, status] = self.requests.labels(path, str(status))
        number.inc()

    def committed(self, changes: int, seconds: float) -> None:
        """One commit was made. Called in the database's thread."""
        self.commits.inc()
        self.changes.inc(changes)
        self.commit_seconds.observe(seconds)

    def page(self) -> tuple[bytes, str]:
        """The text and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


class _PeersByState:
    def __init__(self, counts: Callable[[], PeerCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """`prometheus_client.registry.Collector`: the table is counted once for all states."""
        counts = self._counts()
        family = GaugeMetricFamily("axon_peers", "Rows of the table by what they are good for", labels=["state"])
        for state in ("ready", "busy", "unreachable", "gone"):
            family.add_metric([state], getattr(counts, state))
        yield family


class _Datagrams:
    def __init__(self, said: Mapping[str, int]) -> None:
        self._said = said

    def collect(self) -> Iterable[Metric]:
        """`prometheus_client.registry.Collector`."""
        family = CounterMetricFamily("axon_datagrams", "Datagrams by what became of them", labels=["answer"])
        for answer, count in sorted(self._said.items()):
            family.add_metric([answer], count)
        yield family


OPTION = "--metrics-listen"
FRESH_S = 1.0
"""Metrics are made at most once in so many seconds, however often somebody asks."""


class MetricsListener:
    """`page` makes the text and its content type; `listen` is HOST:PORT."""

    def __init__(self, page: Callable[[], tuple[bytes, str]], listen: str) -> None:
        """Raises `SettingsError` for what is not HOST:PORT."""
        self._make = page
        self._made: tuple[bytes, str] = (b"", "")
        self._made_at = float("-inf")
        self._host, self._port = split_host_port(listen)
        app = web.Application()
        app.router.add_get("/metrics", self._page)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        self._server = PlainServer(app, called="listener for metrics", fix=f"{OPTION} 127.0.0.1:0", headers=headers)

    async def start(self) -> str:
        """Listen; gives the address. Raises `PortTaken` or `SettingsError`."""
        port = await self._server.start(self._host, self._port)
        return f"http://{join_host_port(self._host, port)}/metrics"

    async def stop(self) -> None:
        """Close every connection."""
        await self._server.stop()

    async def _page(self, request: web.Request) -> web.Response:
        now = asyncio.get_running_loop().time()
        if now - self._made_at >= FRESH_S:
            self._made, self._made_at = self._make(), now
        body, content_type = self._made
        return web.Response(body=body, headers={"Content-Type": content_type})
