"""The accusers that are believed when they say that a peer does not answer (pure).

Keys cost nothing, so weight belongs to a key and to the address that it calls from, and the smaller of the two counts.
Everyone begins with half of the weight that one can have. A peer is probed when its accusers' weights come to
`ENOUGH` together: one that we know nothing against is enough, one that was wrong a few times needs others beside it.
The probe judges the accusers: one in the right gains, one in the wrong loses half; with time all return to the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from axonp2p.identity.peer_id import PeerId
from axonp2p.table.records import Report
from tracker.table.admission import check_signed_now

FIRST_WEIGHT = 0.5
ENOUGH = 0.45
"""Accusers' weights together; slightly under the first weight, which decays towards itself in floating point."""
HALF_LIFE_S = 3600.0
"""In this time half of the distance to the first weight is forgotten."""
KNOWN_FOR_S = 60.0
"""A verdict is not asked for again within this time."""
ACCUSED_FOR_S = 300.0
"""How long an accusation waits for others to join it."""
MOST_REMEMBERED = 20_000
"""Accusers, and accused; over that, those who came first are forgotten."""
MOST_ACCUSERS = 64
"""Of one peer; the others add nothing."""


class Hearing(StrEnum):
    """The outcome of a report."""

    PROBE = "probe"
    WAIT = "wait"
    """Its accusers do not weigh enough yet."""
    KNOWN = "known"
    """It was looked at just now, or is being looked at."""


@dataclass
class _Accused:
    since: float
    accusers: dict[str, None] = field(default_factory=dict)
    probing: bool = False


@dataclass(frozen=True)
class _Weight:
    value: float
    at: float


def check_report_time(report: Report, now: float) -> None:
    """Raise `ClockWrong` when a report was not signed just now, so that an old one cannot be used again."""
    check_signed_now("report", report.time, now)


class Reports:
    """Accusations, and what accusers weigh. Times are seconds of one clock that never goes back."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._weights: dict[str, _Weight] = {}
        self._accused: dict[PeerId, _Accused] = {}
        self._judged: dict[PeerId, float] = {}

    def hear(self, peer: PeerId, reporter: PeerId, source: str, now: float) -> Hearing:
        """`reporter`, calling from `source` (an IPv4 address or an IPv6 /56), says that `peer` does not answer."""
        if now - self._judged.get(peer, -KNOWN_FOR_S) < KNOWN_FOR_S:
            return Hearing.KNOWN
        accused = self._accused.get(peer)
        if accused is not None and accused.probing:
            return Hearing.KNOWN
        if accused is None or now - accused.since > ACCUSED_FOR_S:
            self._accused.pop(peer, None)
            accused = self._accused[peer] = _Accused(now)
            _forget_first(self._accused, self._most)
        if len(accused.accusers) < MOST_ACCUSERS:
            accused.accusers[f"{source} {reporter}"] = None
        if self._weight_of_all(accused.accusers, now) < ENOUGH:
            return Hearing.WAIT
        accused.probing = True
        return Hearing.PROBE

    def judge(self, peer: PeerId, *, answers: bool, now: float) -> None:
        """The probe's verdict: it tells who was right."""
        accused = self._accused.pop(peer, None)
        if accused is None:
            return
        self._judged.pop(peer, None)
        self._judged[peer] = now
        _forget_first(self._judged, self._most)
        names = {name for accuser in accused.accusers for name in accuser.split()}
        for name in sorted(names):
            weight = self.weight(name, now)
            self._weights.pop(name, None)
            self._weights[name] = _Weight(weight / 2 if answers else weight + (1 - weight) / 4, now)
            _forget_first(self._weights, self._most)

    def drop(self, peer: PeerId) -> None:
        """No verdict can be had: nobody gains or loses, and the peer may be accused again."""
        self._accused.pop(peer, None)

    def weight(self, name: str, now: float) -> float:
        """The weight of a key or a source now, 0 to 1."""
        known = self._weights.get(name)
        if known is None:
            return FIRST_WEIGHT
        kept = math.pow(0.5, max(0.0, now - known.at) / HALF_LIFE_S)
        return FIRST_WEIGHT + (known.value - FIRST_WEIGHT) * kept

    def _weight_of_all(self, accusers: Iterable[str], now: float) -> float:
        by_source: dict[str, float] = {}  # many keys behind one address are one voice
        for accuser in accusers:
            source, _, reporter = accuser.partition(" ")
            weight = min(self.weight(source, now), self.weight(reporter, now))
            by_source[source] = max(by_source.get(source, 0.0), weight)
        return sum(by_source.values())


def _forget_first(things: dict[str, Any], most: int) -> None:
    if len(things) > most:
        del things[next(iter(things))]
