"""What `queue` knows of a job, and what it orders. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

CRASHES = 4
"""So often the process of a call may end under it, at whichever peers, before its result is that it crashed."""


@dataclass(frozen=True)
class QueuePlan:
    """Which calls there are, and which of them have a result."""

    items: int
    finished: Collection[int] = ()
    retries: int = 0
    """How often a call is made again whose function raised an exception."""
    chunk: int = 0
    """Calls of a chunk; 0: as many as take a second."""
    first_chunk: int = 0
    """The number of the first chunk: no earlier life of the job has used it or a later one."""
    weigh: Callable[[int], int] = field(default=lambda item: 0)
    """Bytes that a call takes of its chunk's message."""
    group: Callable[[int], int] = field(default=lambda item: 0)
    """Calls of one group take about as long: a chunk has calls of one."""
    closed: bool = True
    """Whether no calls are added any more."""


@dataclass(frozen=True)
class StartChunk:
    """Begin a chunk of these calls there, once a core is free."""

    rank: int
    chunk: int
    items: tuple[int, ...]
    copy_of: int | None = None
    """The rank where the same calls stand still."""


@dataclass(frozen=True)
class StopChunk:
    """End this chunk; `only_waiting`: if none of its calls has begun."""

    rank: int
    chunk: int
    only_waiting: bool = False


@dataclass(frozen=True)
class KeepResults:
    """These are the results of their items, by their place among those that came with it. No others ever will be."""

    rank: int
    chunk: int
    places: tuple[int, ...]
    items: tuple[int, ...]


@dataclass(frozen=True)
class KeepCrash:
    """The result of this item is that its process ended too often."""

    rank: int
    item: int
    reason: str


@dataclass(frozen=True)
class SetAside:
    """This peer failed in calls that others could do: it gets no more."""

    rank: int
    items: tuple[int, ...]


QueueAction = StartChunk | StopChunk | KeepResults | KeepCrash | SetAside


@dataclass
class LiveChunk:
    """A chunk that a peer has."""

    number: int
    rank: int
    items: tuple[int, ...]
    came: int = 0
    """How many of its results have come."""
    begun: float | None = None
    stopped: bool = False
    """Whether it was told to end."""
    asked_back: bool = False

    @property
    def left(self) -> tuple[int, ...]:
        """Calls whose results have not come from it."""
        return self.items[self.came :]
