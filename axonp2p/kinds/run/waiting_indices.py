"""Indices that no peer has: which of them a peer is given. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


class WaitingIndices:
    """Those that are begun again come before those that were never begun."""

    def __init__(self, indices: Iterable[int]) -> None:
        self._fresh = sorted(indices, reverse=True)
        """Never begun, the first one last."""
        self._again: list[int] = []
        self._failed_at: defaultdict[int, set[int]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._again) + len(self._fresh)

    def __contains__(self, index: int) -> bool:
        return index in self._again or index in self._fresh

    def all(self) -> list[int]:
        """In no order that matters."""
        return [*self._again, *self._fresh]

    def put_back(self, index: int) -> None:
        """It is to be begun again."""
        self._again.append(index)

    def remove(self, index: int) -> None:
        """It waits no more. Harmless when it does not."""
        for waiting in (self._fresh, self._again):
            if index in waiting:
                waiting.remove(index)

    def note_failure(self, index: int, rank: int) -> None:
        """It failed there."""
        self._failed_at[index].add(rank)

    def failed_at(self, index: int, rank: int) -> bool:
        """Whether it did."""
        return index in self._failed_at and rank in self._failed_at[index]

    def take_for(self, rank: int, *, anywhere: bool) -> int | None:
        """One that did not fail at this peer, or, with `anywhere`, any; None: there is none. It waits no more."""
        fitting = [index for index in self._again if anywhere or not self.failed_at(index, rank)]
        if not fitting:
            return self._fresh.pop() if self._fresh else None
        # Those that failed at most peers have the fewest others left.
        index = max(fitting, key=lambda one: len(self._failed_at.get(one, ())))
        self._again.remove(index)
        return index
