"""Under which keys a row stands (its classes), and which classes to ask for what a job needs.

A class is `TAG|GPU|TIER`, or `all`. Every row is in `all`, in `any|GPU|TIER`, and in one more class for each of its tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from axonp2p.table.dht.compact import CompactRow

EVERYBODY = "all"
"""The class of all rows: in a small network it alone is a whole answer."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a compact row; more than it says must be checked on the full row."""

    cores: int = 1
    memory_mb: int = 0
    gpu_memory_mb: int = 0
    tags: tuple[str, ...] = ()
    """All of these."""


def class_names(row: CompactRow) -> list[str]:
    """The classes of a row (also of a withdrawn one): at most six."""
    raise NotImplementedError


def keys_of(row: CompactRow, depths: Mapping[str, int]) -> dict[str, bytes]:
    """Class -> the key where the row stands, at the class's depth in `depths` (0 where it has none)."""
    raise NotImplementedError


def belongs(row: CompactRow, key: bytes, depth: int) -> bool:
    """Whether the row may stand under this key: its own, or that of one of its classes split by `depth` bits."""
    raise NotImplementedError


def classes_for(wanted: Wanted) -> list[str]:
    """Classes in which rows that meet `wanted` are, best first: the exact tier, higher ones after; `all` is not among them."""
    raise NotImplementedError


def meets(row: CompactRow, wanted: Wanted) -> bool:
    """Whether a row offers what is wanted, and takes work."""
    raise NotImplementedError


def environment_tags(packages: Mapping[str, str]) -> tuple[str, ...]:
    """The tags of an environment: well-known packages with their major version, such as `torch2`."""
    raise NotImplementedError
