"""How deep the sets of each class are split, as far as this node has seen (pure)."""

from __future__ import annotations

from collections import OrderedDict

MOST_CLASSES = 1024


class SetDepths:
    """Class -> bits of its shards; 0 for a class that nobody asked for."""

    def __init__(self) -> None:
        self._depths: OrderedDict[str, int] = OrderedDict()

    def of(self, class_name: str) -> int:
        """Where to begin."""
        return self._depths.get(class_name, 0)

    def learn(self, class_name: str, depth: int) -> None:
        """The set was found not to be crowded at `depth`, or to be crowded one above."""
        self._depths.pop(class_name, None)
        if depth > 0:
            self._depths[class_name] = depth
            if len(self._depths) > MOST_CLASSES:
                self._depths.popitem(last=False)
