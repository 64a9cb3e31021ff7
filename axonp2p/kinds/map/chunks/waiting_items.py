"""Calls without a result that no peer has: new ones in their order, and those that came back, which are first. Pure.

Millions of items take a byte each: an item that is taken or done is passed over when its turn comes, not searched for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from axonp2p.errors import JobFailed
from axonp2p.kinds.map.messages import MOST_ITEMS
from axonp2p.kinds.map.reduce_tree import ReduceTree


class WaitingItems:
    """`done` and `live` are told by the queue; an item in neither waits, one that merges once its children are done."""

    def __init__(self, items: int, finished: Collection[int], tree: ReduceTree | None = None) -> None:
        """`tree`: its calls are the items, whatever `items` says."""
        self._tree = tree
        self._done = bytearray()
        self._undone = 0
        self._live: dict[int, int] = {}
        """In how many chunks an item is."""
        self._next = 0
        """The first one that was never looked at."""
        self._again: deque[int] = deque()
        self._early: set[int] = set()
        """Those among them that come before their turn."""
        self.add(tree.calls if tree else items)
        for item in finished:
            if self.is_known(item):
                self.finish(item)

    def add(self, count: int) -> None:
        """So many more items. Raises `JobFailed` for more than a job may have."""
        if len(self._done) + count > MOST_ITEMS:
            raise JobFailed(f"a job makes at most {MOST_ITEMS:,} calls", fix="begin another job for those that follow")
        self._done.extend(bytes(count))
        self._undone += count

    def is_done(self, item: int) -> bool:
        """Whether it has its result."""
        return bool(self._done[item])

    def is_known(self, item: int) -> bool:
        """Whether there is such an item."""
        return item < len(self._done)

    def is_live(self, item: int) -> bool:
        """Whether a peer has it."""
        return item in self._live

    def chunks_of(self, item: int) -> int:
        """How many chunks have it."""
        return self._live.get(item, 0)

    def finish(self, item: int) -> bool:
        """It has its result; false: it had one."""
        if self._done[item]:
            return False
        self._done[item] = 1
        self._undone -= 1
        parent = self._tree.parent_of(item) if self._tree else None
        if parent is not None and not self._done[parent] and not self.is_live(parent) and self._is_ready(parent):
            self.put_back(parent)
        return True

    def hold(self, items: Iterable[int]) -> None:
        """A chunk has these."""
        for item in items:
            self._live[item] = self._live.get(item, 0) + 1

    def release(self, items: Iterable[int]) -> None:
        """A chunk that had these is over: those without a result, that no other chunk has, wait again."""
        for item in items:
            if self._live[item] > 1:
                self._live[item] -= 1
                continue
            del self._live[item]
            if not self._done[item]:
                self.put_back(item)

    def put_back(self, item: int) -> None:
        """It is among the first to be taken."""
        self._again.append(item)
        if item >= self._next:
            self._early.add(item)

    def reopen(self, item: int) -> None:
        """The result that it had counts no more."""
        self._done[item] = 0
        self._undone += 1
        if item not in self._live:
            self.put_back(item)

    def take(self, most: int, fits: Callable[[int], bool], *, new: bool = True) -> list[int]:
        """The next ones, at most so many, until one does not fit; those of which it is said so wait on.

        `new`: also such as were never taken.
        """
        taken: list[int] = []
        for _ in range(len(self._again)):
            if len(taken) == most:
                return taken
            item = self._again.popleft()
            if self._done[item] or item in self._live or item in taken:
                continue
            if self._is_ready(item) and fits(item):
                taken.append(item)
            else:
                self._again.append(item)
        turns = self._tree.leaves if self._tree else len(self._done)
        while new and len(taken) < most and self._next < turns:
            item = self._next
            if item in self._early:
                self._early.discard(item)
            elif not self._done[item] and item not in self._live:
                if not fits(item):
                    break
                taken.append(item)
            self._next += 1
        return taken

    def _is_ready(self, item: int) -> bool:
        """Whether all is done that it merges, if it merges anything."""
        return not self._tree or all(self._done[child] for child in self._tree.children_of(item))

    @property
    def waiting(self) -> int:
        """How many no peer has."""
        return self._undone - sum(not self._done[item] for item in self._live)

    @property
    def items(self) -> int:
        """All of them."""
        return len(self._done)

    @property
    def undone(self) -> int:
        """Those without a result."""
        return self._undone
