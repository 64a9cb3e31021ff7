"""Which partial results of `reduce` are merged next, until one is left. Pure.

A partial is one value for a run of items: it names the first and the one after the last, so it is booked whole or not
at all. Only neighbours are merged, in their order, so `reduce` has to be associative and nothing more. Partials of one
height are merged `ARITY` at a time while items are still on their way, and all that is left at the end: a merge is a
chunk of work like any other, at a peer, and never in the program that keeps the job.

    items   0....9 10...19 20...29   30...39
    height  0      0      0          (running)
            merged ------------> 0...29, height 1
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ARITY = 16
"""Partials that one merge takes at most: each byte goes out again about once for each 16 that came home."""
MOST_MERGED_BYTES = 64_000_000
"""That one merge is sent, beyond its first two."""


@dataclass(frozen=True, order=True)
class Partial:
    """The merged value of the items from `first` up to `end`, which is not among them."""

    first: int
    end: int
    height: int = 0
    """How often its parts were merged."""
    bytes: int = 0


Merge = tuple[Partial, ...]
"""Neighbours, in the order in which `reduce` takes them."""


class MergeTree:
    """The partials of one job of so many items. `found`: those that an earlier life of the job kept."""

    def __init__(self, items: int, found: Iterable[Partial] = ()) -> None:
        self._items = items
        self._partials: list[Partial] = []
        """Those that no merge has taken, by their first item."""
        self._taken: dict[tuple[int, int], Merge] = {}
        """Merges under way, by the items of their result."""
        self._covered: list[tuple[int, int]] = []
        """The items of all partials, taken ones too."""
        self._done = 0
        """How many items that is."""
        for partial in found:
            self.add(partial)

    def add(self, partial: Partial) -> bool:
        """A chunk is done; false: some of its items are in another partial, so it is dropped."""
        place = bisect_left(self._covered, (partial.first, partial.end))
        after = self._covered[place][0] if place < len(self._covered) else self._items
        before = self._covered[place - 1][1] if place else 0
        if not before <= partial.first < partial.end <= after:
            return False
        self._covered.insert(place, (partial.first, partial.end))
        self._done += partial.end - partial.first
        insort(self._partials, partial)
        return True

    def take(self) -> list[Merge]:
        """The merges that can begin now; each stays under way until `merged` or `put_back`."""
        merges: list[Merge] = []
        for run in self._runs():
            merges += self._all_of(run) if self._done == self._items else self._full_ones_of(run)
        for merge in merges:
            self._taken[merge[0].first, merge[-1].end] = merge
            for partial in merge:
                self._partials.remove(partial)
        return merges

    def merged(self, first: int, end: int, size: int) -> Merge:
        """The result of a merge is here, of so many bytes: it takes the place of those that it gives back."""
        merge = self._taken.pop((first, end))
        for partial in merge:
            self._covered.remove((partial.first, partial.end))
            self._done -= partial.end - partial.first
        self.add(Partial(first, end, 1 + max(partial.height for partial in merge), size))
        return merge

    def put_back(self, first: int, end: int) -> None:
        """A merge came to nothing."""
        for partial in self._taken.pop((first, end)):
            insort(self._partials, partial)

    @property
    def result(self) -> Partial | None:
        """The one partial of all items, once it is there."""
        if len(self._partials) == 1 and (self._partials[0].first, self._partials[0].end) == (0, self._items):
            return self._partials[0]
        return None

    def _runs(self) -> list[list[Partial]]:
        """Partials without a gap between them, or a merge under way."""
        runs: list[list[Partial]] = []
        for partial in self._partials:
            if runs and runs[-1][-1].end == partial.first:
                runs[-1].append(partial)
            else:
                runs.append([partial])
        return runs

    def _full_ones_of(self, run: Sequence[Partial]) -> list[Merge]:
        merges: list[Merge] = []
        same: list[Partial] = []
        for partial in run:
            if same and partial.height != same[0].height:
                same = []
            same.append(partial)
            if len(same) == ARITY or (len(same) > 1 and sum(one.bytes for one in same) > MOST_MERGED_BYTES):
                merges.append(tuple(same))
                same = []
        return merges

    def _all_of(self, run: Sequence[Partial]) -> list[Merge]:
        merges: list[Merge] = []
        group: list[Partial] = []
        for partial in run:
            full = len(group) == ARITY or (len(group) > 1 and sum(one.bytes for one in group) > MOST_MERGED_BYTES)
            if full:
                merges.append(tuple(group))
                group = []
            group.append(partial)
        if len(group) > 1:
            merges.append(tuple(group))
        return merges
