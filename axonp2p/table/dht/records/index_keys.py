"""Under which keys a row stands (its classes), which classes a job's need asks for, and how deep their sets are split.

A class is `TAG|GPU|TIER`, or `all`. Every row is in `all`, in `any|GPU|TIER`, and in one more for each of its tags.
A member of a tier has what any peer of that tier has in both cores and memory; a lop-sided one stands in the lower.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from axonp2p.table.dht.records.compact import CompactRow
from axonp2p.table.dht.routing.keys import DEEPEST, index_key, row_key, shard_bits

EVERYBODY = "all"
"""The class of all rows: in a small network it alone is a whole answer, and in a large one its set says it is split."""
HIGHEST_TIER = 7
WELL_KNOWN = ("jax", "tensorflow", "torch", "transformers")
"""Packages of which an environment has a tag. Not more than a row may have tags."""

_ANY = "any"
_GPUS = ("gpu0", "gpu1", "gpu12", "gpu24")
_GPU_FROM_MB = (0, 1, 12 * 1024, 24 * 1024)


@dataclass(frozen=True)
class RowQuery:
    """The need asked of a compact row; more than it says must be checked on the full row."""

    cores: int = 1
    memory_mb: int = 0
    gpu_memory_mb: int = 0
    tags: tuple[str, ...] = ()
    """All of these."""


def class_names(row: CompactRow) -> list[str]:
    """The classes of a row (also of a withdrawn one): at most six."""
    rest = f"{_GPUS[_gpu_class(row.gpu_memory_mb)]}|{tier_of(row.cores, row.memory_mb)}"
    return [EVERYBODY, f"{_ANY}|{rest}", *(f"{tag}|{rest}" for tag in row.tags)]


def belongs(row: CompactRow, key: bytes, depth: int) -> bool:
    """Whether the row may stand under this key: its own, or that of one of its classes split by `depth` bits."""
    if key == row_key(row.public_key):
        return depth == 0
    if not 0 <= depth <= DEEPEST:
        return False
    bits = shard_bits(row.public_key, depth)
    return any(key == index_key(name, bits) for name in class_names(row))


def classes_for(wanted: RowQuery) -> list[str]:
    """Classes in which rows that meet `wanted` are, best first: the exact tier, higher ones after. Without `all`."""
    label = wanted.tags[0] if wanted.tags else _ANY
    gpu, tier = _gpu_class(wanted.gpu_memory_mb), tier_of(wanted.cores, wanted.memory_mb)
    steps = [(more, high) for more in range(len(_GPUS) - gpu) for high in range(HIGHEST_TIER + 1 - tier)]
    steps.sort(key=lambda step: (sum(step), step))  # a far stronger peer is the last resort
    return [f"{label}|{_GPUS[gpu + more]}|{tier + high}" for more, high in steps]


def meets(row: CompactRow, wanted: RowQuery) -> bool:
    """Whether a row offers what is wanted, and takes work."""
    return (
        row.offers_work
        and row.cores >= wanted.cores
        and row.memory_mb >= wanted.memory_mb
        and row.gpu_memory_mb >= wanted.gpu_memory_mb
        and all(tag in row.tags for tag in wanted.tags)
    )


def tier_of(cores: int, memory_mb: int) -> int:
    """min(floor log2 cores, floor log2 GiB - 1), in 0..7: 4 cores and 8 GiB are tier 2."""
    by_memory = (memory_mb // 1024).bit_length() - 2
    return max(0, min(cores.bit_length() - 1, by_memory, HIGHEST_TIER))


def environment_tags(packages: Mapping[str, str]) -> tuple[str, ...]:
    """The tags of an environment (version by name): well-known packages with their major version, such as `torch2`."""
    tags = []
    for name in WELL_KNOWN:
        try:
            tags.append(f"{name}{Version(packages[name]).major}")
        except (KeyError, InvalidVersion):  # absent, or of a version that says nothing
            continue
    return tuple(sorted(tag for tag in tags if len(tag) <= 16))


def tags_needed(requirements: Iterable[str]) -> tuple[str, ...]:
    """The tags that every peer has which meets these pip requirements: where they leave one major version only."""
    tags = set()
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:  # no peer meets it, whatever its tags; whoever reads the full need says so
            continue
        name = requirement.name.lower()
        major = _only_major(str(requirement.specifier)) if name in WELL_KNOWN else None
        if major is not None:
            tags.add(f"{name}{major}")
    return tuple(sorted(tags))


@lru_cache(maxsize=256)
def _only_major(specifier: str) -> int | None:
    parts = SpecifierSet(specifier)
    try:
        named = [Version(part.version.removesuffix(".*")) for part in parts]
    except InvalidVersion:  # `===` takes any text
        return None
    admitted = []
    # One beyond the highest named: where that fits as well, all later ones do.
    for major in range(max((version.major for version in named), default=0) + 2):
        probes = [Version(f"{major}.0"), Version(f"{major}.99999"), *(v for v in named if v.major == major)]
        if any(parts.contains(probe, prereleases=True) for probe in probes):
            admitted.append(major)
    return admitted[0] if len(admitted) == 1 else None


def _gpu_class(memory_mb: int) -> int:
    return max(index for index, least in enumerate(_GPU_FROM_MB) if memory_mb >= least)


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
