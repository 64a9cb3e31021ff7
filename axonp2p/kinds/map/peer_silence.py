"""Which peers are asked whether they are there, count as silent, or as lost. Pure.

A worker has nothing to say while a long call runs, so it is asked; its main thread answers at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

ASK_S = 10.0
"""Nothing was heard of it for so long."""
SILENT_S = 15.0
"""Its calls may be copied elsewhere from now on."""
LOST_S = 75.0

Due = tuple[Literal["ask", "silent", "lost"], int]


class PeerSilence:
    """By rank. A peer that its owner has paused is not expected to answer."""

    def __init__(self) -> None:
        self._heard: dict[int, float] = {}
        self._told: dict[int, float] = {}
        """How long the silence was of which it was told last."""

    def heard(self, rank: int, now: float) -> None:
        """It has said something, or it has come."""
        self._heard[rank] = now
        self._told.pop(rank, None)

    def forget(self, rank: int) -> None:
        """It has gone."""
        self._heard.pop(rank, None)
        self._told.pop(rank, None)

    def due(self, now: float, expected: Collection[int]) -> list[Due]:
        """The actions to be taken now about those that are expected to answer."""
        found: list[Due] = []
        for rank, heard in self._heard.items():
            if rank not in expected:
                continue
            for limit, what in ((ASK_S, "ask"), (SILENT_S, "silent"), (LOST_S, "lost")):
                if heard + limit <= now and self._told.get(rank, 0.0) < limit:
                    self._told[rank] = limit
                    found.append((what, rank))  # type: ignore[arg-type]
        return found

    def next_deadline(self, expected: Collection[int]) -> float | None:
        """When to ask again."""
        moments = [
            heard + next(limit for limit in (ASK_S, SILENT_S, LOST_S) if self._told.get(rank, 0.0) < limit)
            for rank, heard in self._heard.items()
            if rank in expected and self._told.get(rank, 0.0) < LOST_S
        ]
        return min(moments, default=None)
