"""All that the operator's page shows at one moment, and sums over the last day (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from tracker.api.status import OtherState
from tracker.storage.disk import Disk
from tracker.table.table_index import PeerCounts

SAMPLE_S = 60.0
DAY_S = 24 * 3600.0
LITTLE_DISK = 2e9
"""Bytes: with less, the disk is almost full. The alert in docs/operate.md has the same number."""
BARS = 96
"""Of the last day: a quarter of an hour each."""


@dataclass(frozen=True)
class RequestCounts:
    """The requests since the start, and their outcomes."""

    by_path: Mapping[str, int] = field(default_factory=dict)
    """Requests, by address."""
    refusals: Mapping[str, int] = field(default_factory=dict)
    """By the code of docs/errors.md."""
    mean_ms: float = 0.0
    """From a request to its answer."""
    slow_ms: float = 0.0
    """95 of 100 answers were faster than this."""


@dataclass(frozen=True)
class RelayNow:
    """The traffic that is carried for peers that nobody can dial."""

    peers: int = 0
    streams: int = 0
    bytes: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Sample:
    """Sums since the start at one moment, to be compared with later ones."""

    at: float
    alive: int
    announces: int
    queries: int
    refusals: int
    receipts: int
    relay_bytes: int


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The whole of it. Times are Unix seconds."""

    tracker: str
    address: str
    version: str
    started: float
    now: float
    trouble: str
    peers: PeerCounts
    traffic: RequestCounts
    trackers: list[OtherState]
    receipts: int
    convictions: int
    disk: Disk
    relay: RelayNow | None
    """None when it carries nothing."""
    hosted_jobs: int
    samples: tuple[Sample, ...]
    """Of the last day, or since the start; a minute apart."""

    @property
    def disk_is_low(self) -> bool:
        """Whether it will be full soon."""
        return self.disk.free < LITTLE_DISK

    @property
    def false_logs(self) -> list[OtherState]:
        """Those that are proved to have signed what cannot be true."""
        return [other for other in self.trackers if other.log_is_false]

    @property
    def word(self) -> str:
        """Its state in a word."""
        if self.trouble:
            return "TROUBLE"
        if self.trackers and not any(other.lives for other in self.trackers):
            return "ALONE"
        return "SERVES"


class DayOfSamples:
    """The samples of the last day."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=int(DAY_S / SAMPLE_S) + 1)

    def add(self, sample: Sample) -> None:
        """One more, a minute after the last."""
        self._samples.append(sample)

    @property
    def all(self) -> tuple[Sample, ...]:
        """The oldest first."""
        return tuple(self._samples)


def bars(samples: Iterable[Sample], name: str, now: float) -> list[float | None]:
    """The growth of a sum (`announces`, ...) in each quarter of an hour of the last day; None before the start."""
    assert name in {one.name for one in fields(Sample)}
    grown: list[float | None] = [None] * BARS
    before: Sample | None = None
    for sample in samples:
        place = _place(sample.at, now)
        if before is not None and place is not None:
            more = max(0, getattr(sample, name) - getattr(before, name))
            grown[place] = (grown[place] or 0) + more
        before = sample
    return grown


def levels(samples: Iterable[Sample], name: str, now: float) -> list[float | None]:
    """The last value (`alive`) of each quarter of an hour of the last day; None before the start."""
    found: list[float | None] = [None] * BARS
    for sample in samples:
        place = _place(sample.at, now)
        if place is not None:
            found[place] = getattr(sample, name)
    return found


def _place(at: float, now: float) -> int | None:
    """The last bar ends now."""
    place = BARS - 1 - int(max(0.0, now - at) / (DAY_S / BARS))
    return place if place >= 0 else None
