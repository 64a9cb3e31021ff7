"""Which chunks each peer has, and which peers have room for another. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

MOST_CORES = 128
"""Of one peer, for which it is given chunks."""
ANSWER_S = 15.0
"""Within so many seconds a peer begins a chunk for which it has a core, and gives back one that it has not begun."""


@dataclass
class LiveChunk:
    """A chunk that a peer has."""

    number: int
    rank: int
    items: tuple[int, ...]
    came: int = 0
    """How many of its results have come."""
    begun: float | None = None
    """When, by its peer's word."""
    sent: float = 0.0
    stopped: bool = False
    """Whether it was told to end."""
    asked: float = math.inf
    """When it was asked back; infinite: it was not."""
    quorum: int = 0
    """How many equal results its calls need; 0: nothing has come of it yet."""
    void: frozenset[int] = frozenset()
    """Calls whose results do not count: what they merge counts no more."""

    @property
    def left(self) -> tuple[int, ...]:
        """Calls whose results have not come from it."""
        return self.items[self.came :]

    @property
    def not_back_from(self) -> float:
        """The moment from which it counts as not given back; infinite: it was not asked back, or has begun."""
        return self.asked + ANSWER_S if self.begun is None else math.inf


class LiveChunks:
    """By rank. `leaving`, `paused`, `silent` and `aside` are of peers that are there."""

    def __init__(self) -> None:
        self._chunks: dict[int, LiveChunk] = {}
        """By number."""
        self._at: dict[int, dict[int, LiveChunk]] = {}
        """By rank, in their order."""
        self._cores: dict[int, int] = {}
        self.freed: dict[int, float] = {}
        """When they ended a chunk last."""
        self.leaving: set[int] = set()
        """Their owners want them back soon."""
        self.paused: dict[int, float] = {}
        """Since when."""
        self.silent: set[int] = set()
        self.aside: set[int] = set()
        """They get no more."""

    def __contains__(self, rank: int) -> bool:
        return rank in self._cores

    def join(self, rank: int, cores: int) -> None:
        """A peer is there."""
        self._cores[rank] = min(max(1, cores), MOST_CORES)
        self._at[rank] = {}

    def forget(self, rank: int) -> list[LiveChunk]:
        """It has gone; the chunks that it had."""
        chunks = list(self._at.pop(rank, {}).values())
        for chunk in chunks:
            del self._chunks[chunk.number]
        self._cores.pop(rank, None)
        self.freed.pop(rank, None)
        self.paused.pop(rank, None)
        for places in (self.leaving, self.silent, self.aside):
            places.discard(rank)
        return chunks

    def put(self, chunk: LiveChunk) -> None:
        """A peer has one more."""
        self._chunks[chunk.number] = self._at[chunk.rank][chunk.number] = chunk

    def take(self, rank: int, number: int) -> LiveChunk | None:
        """One is over."""
        chunk = self._at.get(rank, {}).pop(number, None)
        if chunk is not None:
            del self._chunks[number]
        return chunk

    def find(self, rank: int, number: int) -> LiveChunk | None:
        """That one, if that peer has it."""
        return self._at.get(rank, {}).get(number)

    @property
    def all(self) -> Collection[LiveChunk]:
        """Those of all peers."""
        return self._chunks.values()

    def at(self, rank: int) -> tuple[LiveChunk, ...]:
        """Those of one."""
        return tuple(self._at.get(rank, {}).values())

    def is_known(self, number: int) -> bool:
        """Whether any peer has it."""
        return number in self._chunks

    # --- who has room ---

    def able(self) -> list[int]:
        """Peers that may get one."""
        out = self.leaving | self.silent | self.aside | self.paused.keys()
        return [rank for rank in self._cores if rank not in out]

    def trusted(self) -> list[int]:
        """Peers that are there and not set aside."""
        return [rank for rank in self._cores if rank not in self.aside]

    @property
    def places(self) -> int:
        """Chunks that those may have that are able."""
        return 2 * sum(self._cores[rank] for rank in self.able())

    def load(self, rank: int) -> float:
        """Chunks for each of its cores."""
        return len(self._at[rank]) / self._cores[rank]

    def idle(self, rank: int) -> int:
        """Cores that have nothing to do."""
        return max(0, self._cores[rank] - len(self._at[rank]))

    def has_free_core(self, rank: int) -> bool:
        """Whether fewer chunks run there than it has cores."""
        running = sum(chunk.begun is not None and not chunk.stopped for chunk in self._at[rank].values())
        return running < self._cores[rank]

    def crowded(self) -> list[int]:
        """Peers with chunks that wait for a core, those with most first."""
        return sorted((rank for rank in self._at if self.load(rank) > 1), key=self.load, reverse=True)
