"""Which calls failed where: which are made again, and which peers fail in what others can do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from axonp2p.kinds.map.chunks.live_chunks import LiveChunks
from axonp2p.kinds.map.queue_actions import SetAside

CRASHES = 4
"""So often the process of a call may end under it, at whichever peers, before its result is that it crashed."""
FAULTS = 2
"""In so many chunks a peer may fail that others could do."""


class CallFailures:
    """Of items without a result. Peers that fail too often are set aside among `chunks`."""

    def __init__(self, chunks: LiveChunks, retries: int) -> None:
        """`retries`: how often a call is made again whose function raised an exception."""
        self._chunks = chunks
        self._retries = retries
        self._raised: Counter[int] = Counter()
        self._crashed: Counter[int] = Counter()
        self._failed_at: dict[int, dict[int, int]] = {}
        """By item: the ranks where it failed, and in which chunk."""
        self._faults: dict[int, dict[int, int]] = {}
        """By rank: chunks in which it failed, each with an item that another peer did."""

    def raised(self, item: int, rank: int, number: int) -> bool:
        """Its function raised an exception; whether the call is made again."""
        self._raised[item] += 1
        again = self._raised[item] <= self._retries
        if again:
            self._failed_at.setdefault(item, {})[rank] = number
        return again

    def crashed(self, item: int, rank: int, number: int) -> bool:
        """Its process ended under it; whether the call is made again."""
        self._crashed[item] += 1
        self._failed_at.setdefault(item, {})[rank] = number
        return self._crashed[item] < CRASHES

    def finished(self, item: int, rank: int, *, good: bool) -> list[SetAside]:
        """It has its result, from that peer; `good`: another peer that failed in it could have done it."""
        self._raised.pop(item, None)
        self._crashed.pop(item, None)
        failed_at = self._failed_at.pop(item, {})
        return [
            set_aside
            for failed, number in failed_at.items()
            if good and failed != rank and (set_aside := self._fault(failed, number, item))
        ]

    def forget(self, rank: int) -> None:
        """That peer is gone."""
        self._faults.pop(rank, None)

    def has_failed(self, rank: int, items: Collection[int]) -> bool:
        """Whether one of these failed there."""
        return any(rank in self._failed_at.get(item, ()) for item in items)

    def may_try(self, rank: int, item: int) -> bool:
        """Whether it has not failed there, or has failed wherever it could be."""
        failed = self._failed_at.get(item, {})
        return rank not in failed or all(other in failed for other in self._chunks.able())

    def _fault(self, rank: int, number: int, item: int) -> SetAside | None:
        if rank not in self._chunks or rank in self._chunks.aside:
            return None
        faults = self._faults.setdefault(rank, {})
        faults[number] = item
        if len(faults) < FAULTS:
            return None
        self._chunks.aside.add(rank)
        return SetAside(rank, tuple(sorted(faults.values())))
