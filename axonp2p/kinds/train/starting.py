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
        self._stepped: set[int] = set()
        self._steps_began: float | None = None
        self._round_done = False

    def ready(self, rank: int) -> None:
        """This one has built its model."""
        self._ready.add(rank)

    def steps_begin(self, now: float) -> None:
        """They were told to take their first steps: news of those is due by itself, and the step-timeout runs."""
        if self._steps_began is None:
            self._steps_began, self._next = now, now + FIRST_S

    def stepped(self, rank: int) -> None:
        """This one has come through a local step."""
        self._stepped.add(rank)

    def round_done(self) -> None:
        """From now on it is known how long they take: whoever is late is told of as such."""
        self._round_done = True

    def over(self, present: Collection[int]) -> bool:
        """Whether all that are there have come through a step."""
        return self._round_done or self._stepped.issuperset(present)

    def due(self, now: float, present: Mapping[int, str], loaded: Collection[int]) -> PeersStarting | None:
        """The news now, if there is any, of those that are `present` by name; `loaded`: where torch is loaded."""
        waiting = {rank: name for rank, name in present.items() if rank not in self._ready}
        began = now if self._steps_began is None else self._steps_began
        steps_late = now >= began + FIRST_S
        stepping = [
            name for rank, name in present.items() if steps_late and rank in self._ready and rank not in self._stepped
        ]
        if now < self._next or not (waiting or stepping):
            return None
        self._next = now + AGAIN_S
        return PeersStarting(
            loading=[name for rank, name in waiting.items() if rank not in loaded],
            building=[name for rank, name in waiting.items() if rank in loaded],
            seconds=now - self._began,
            stepping=stepping,
            step_seconds=now - began if stepping else 0.0,
        )
