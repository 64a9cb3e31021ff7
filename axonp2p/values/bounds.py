"""How large a value may be that comes back. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResultBounds:
    """Of one value. The packer keeps to them too, so that nothing is sent that would be refused."""

    most_bytes: int = 64_000_000
    """Of its packed form."""
    most_items: int = 2_000_000
    """Values in it, each number and text; a container counts as `CONTAINER_ITEMS`. An array is one container."""
    most_depth: int = 32
    """Containers within each other."""


CONTAINER_ITEMS = 4
"""An empty list takes one byte on the wire and sixty in memory."""
MOST_EQUAL_HASHES = 64
"""Keys of a dict that may have one hash: with more, a stranger's dict would take hours to make."""
LONGEST_INT = 1024
"""Bytes; Python needs a moment to show longer ones."""
MOST_AXES = 32
LONGEST_DTYPE = 16
"""Characters."""


class ItemBudget:
    """The rest of `ResultBounds.most_items`."""

    def __init__(self, items: int) -> None:
        self._items = items

    def spend(self, items: int) -> bool:
        """Whether there were so many left."""
        self._items -= items
        return self._items >= 0
