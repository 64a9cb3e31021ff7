"""What a tracker counts, for Prometheus: GET /metrics."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from axonp2p.transport.relay.admission import Admission

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
        self._seconds_of: dict[str, Histogram] = {}
        self._requests_of: dict[tuple[str, int], Counter] = {}
        self.commits = Counter("axon_commits", "Commits to the database", registry=self.registry)
        self.changes = Counter("axon_changes", "Changes in those commits", registry=self.registry)
        self.commit_seconds = Histogram(
            "axon_commit_seconds", "One commit, the disk included", buckets=_SECONDS, registry=self.registry
        )
        Gauge("axon_start_time_seconds", "Unix time of the start", registry=self.registry).set(time.time())
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

    def answered(self, path: str, status: int, seconds: float) -> None:
        """A request for `path` was answered after so many seconds. `path` must be one of few: each is remembered."""
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
