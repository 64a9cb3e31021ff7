"""Which calls a job makes whose results are merged: a tree in which every call has its place from the beginning. Pure.

The first calls each fold the results of a few items that follow each other. Each of the others merges the results of
some calls before it, in their order, so `reduce` has to be associative and nothing more. A call is made like any other:
at some peer, again where it fails, at several peers where results are compared; its result is booked whole or not at
all. Since a place in the tree never changes, calls made twice give the same, and a job can be resumed at any moment.

    items        0 1 2 3 4 5 6 7 8 9 ...           98 99
    calls        0     1     2   ...               33        fold = 3: call 2 folds items 6, 7 and 8
                 34 merges 0 to 6 ...              38        at most ARITY each
                                  39                         the last one: the result of the job
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

ARITY = 8
"""Results that one call merges at most: they travel to its peer, so each byte goes out once on each level."""
MOST_FOLDED = 100
"""Items of one call, unless a job asks for more: a lost peer costs no more than these."""
CALLS_PER_CORE = 32
"""As many calls a core wants so that fast peers can make more of them than slow ones."""


class ReduceTree:
    """The calls of a job of so many items, `fold` of which are folded by each of the first calls."""

    def __init__(self, items: int, fold: int) -> None:
        self.items = items
        self.fold = fold
        self.leaves = -(-items // fold)
        """Calls that fold items; those with higher numbers merge."""
        self._firsts, self._sizes = [0], [self.leaves]
        """Of each level: its first call, and how many calls it has."""
        while self._sizes[-1] > 1:
            self._firsts.append(self._firsts[-1] + self._sizes[-1])
            self._sizes.append(-(-self._sizes[-1] // ARITY))

    @property
    def calls(self) -> int:
        """How many there are; the last one's result is that of the job."""
        return self._firsts[-1] + self._sizes[-1]

    def merges(self, call: int) -> bool:
        """Whether it merges results of other calls."""
        return call >= self.leaves

    def items_of(self, call: int) -> range:
        """The items that one of the first calls folds."""
        return range(call * self.fold, min(self.items, (call + 1) * self.fold))

    def children_of(self, call: int) -> range:
        """The calls whose results this one merges; none for one that folds items, or that does not exist."""
        if not self.leaves <= call < self.calls:
            return range(0)
        level = bisect_right(self._firsts, call) - 1
        below, size = self._sizes[level - 1], self._sizes[level]
        place = call - self._firsts[level]
        first = self._firsts[level - 1]
        return range(first + place * below // size, first + (place + 1) * below // size)

    def parent_of(self, call: int) -> int | None:
        """The call that merges its result; None for the last one."""
        level = bisect_right(self._firsts, call) - 1
        if level + 1 == len(self._firsts):
            return None
        below, size = self._sizes[level], self._sizes[level + 1]
        place = ((call - self._firsts[level] + 1) * size - 1) // below
        return self._firsts[level + 1] + place

    def ancestors_of(self, calls: Iterable[int]) -> set[int]:
        """All calls that merge what comes of these, nearer or further."""
        found: set[int] = set()
        for call in calls:
            parent = self.parent_of(call)
            while parent is not None and parent not in found:
                found.add(parent)
                parent = self.parent_of(parent)
        return found


def fold_of(items: int, peers: int, cores: int) -> int:
    """How many items each of the first calls folds, unless the job says so."""
    return max(1, min(MOST_FOLDED, items // (CALLS_PER_CORE * peers * cores)))
