"""Peers that have the bundle and do not train yet: when a person hears of them, and what they do. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from axonp2p.kinds.train.events import PeersStarting

FIRST_S, AGAIN_S = 10.0, 30.0
"""After so long it is told, and then again: workers yield to whatever else a machine does, and may take minutes."""


class StartingPeers:
    """Those of one life of a job. Times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._next = now + FIRST_S
        self._ready: set[int] = set()

    def ready(self, rank: int) -> None:
        """This one has built its model."""
        self._ready.add(rank)

    def over(self, present: Collection[int]) -> bool:
        """Whether all that are there have built it."""
        return self._ready.issuperset(present)

    def due(self, now: float, present: Mapping[int, str], loaded: Collection[int]) -> PeersStarting | None:
        """What is told now, if anything is, of those that are `present` by name; `loaded`: where torch is loaded."""
        waiting = {rank: name for rank, name in present.items() if rank not in self._ready}
        if now < self._next or not waiting:
            return None
        self._next = now + AGAIN_S
        return PeersStarting(
            loading=[name for rank, name in waiting.items() if rank not in loaded],
            building=[name for rank, name in waiting.items() if rank in loaded],
            seconds=now - self._began,
        )
