"""The state that `queue` keeps of a job, and its orders. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from axonp2p.kinds.map.opinions.quorum import Accepted, Vote
from axonp2p.kinds.map.reduce_tree import ReduceTree
from axonp2p.plain_text import plural


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
    quorum: Callable[[int], int] = field(default=lambda rank: 1)
    """How many equal results a chunk needs, asked once the first one of that rank is here."""
    error_quorum: Callable[[int], int] = field(default=lambda rank: 1)
    """The same for a result of that rank that is an exception."""
    opinions: Mapping[int, tuple[int, list[Vote]]] = field(default_factory=dict)
    """Of items that an earlier life left undecided: how many must be equal, and what was found."""
    outvoted: Collection[str] = ()
    """Peers that get no calls: others agreed that their results are wrong."""
    tree: ReduceTree | None = None
    """Where results are merged, its calls are the items: one that merges waits for the results that it is made of."""


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
    verdicts: Mapping[int, Accepted] = field(default_factory=dict)
    """Of those for which more than one peer was asked."""


@dataclass(frozen=True)
class KeepOpinions:
    """These results wait until other peers have given theirs, by their place among those that came with them."""

    rank: int
    chunk: int
    places: tuple[int, ...]
    items: tuple[int, ...]
    needed: int
    """So many must be equal."""


@dataclass(frozen=True)
class KeepUndecided:
    """The result of this item is that too many peers found too many things."""

    rank: int
    item: int
    peers: tuple[str, ...]


@dataclass(frozen=True)
class Distrust:
    """Others agreed that this peer's results are wrong: what it alone vouched for is not believed."""

    peer: str
    rank: int | None
    """Where it is there."""
    others: int
    item: int
    """The first in which it was outvoted."""

    @property
    def reason(self) -> str:
        """Why it gets no more calls."""
        return f"its results differ from those of {plural(self.others, 'other')}"


@dataclass(frozen=True)
class KeepCrash:
    """The result of this item is that its process ended too often."""

    rank: int
    item: int
    reason: str


@dataclass(frozen=True)
class SetAside:
    """This peer gets no more calls: it failed in these, which others could do; none: it was outvoted earlier."""

    rank: int
    items: tuple[int, ...]

    @property
    def reason(self) -> str:
        """Why it gets no more calls."""
        if not self.items:
            return "its results differed from those of others"
        return f"it failed in calls that others could do: items {', '.join(map(str, self.items[:16]))}"


class CountedResults:
    """Results of a chunk that came together: those that count, and those that wait as opinions."""

    def __init__(self, rank: int, chunk: int) -> None:
        self._rank, self._chunk = rank, chunk
        self._kept: dict[int, int] = {}
        """Items by place."""
        self._waiting: dict[int, dict[int, int]] = {}
        """The same, by how many must be equal."""
        self.verdicts: dict[int, Accepted] = {}
        """Of those for which more than one peer was asked."""

    def keep(self, place: int, item: int, accepted: Accepted) -> None:
        """It counts."""
        self._kept[place] = item
        if len(accepted.agreed) + len(accepted.outvoted) > 1:
            self.verdicts[item] = accepted

    def wait(self, place: int, item: int, needed: int) -> None:
        """It waits for others."""
        self._waiting.setdefault(needed, {})[place] = item

    def actions(self) -> list[KeepOpinions | KeepResults]:
        """The actions on them."""
        found: list[KeepOpinions | KeepResults] = [
            KeepOpinions(self._rank, self._chunk, tuple(items), tuple(items.values()), needed)
            for needed, items in self._waiting.items()
        ]
        if kept := self._kept:
            found.append(KeepResults(self._rank, self._chunk, tuple(kept), tuple(kept.values()), self.verdicts))
        return found


QueueAction = StartChunk | StopChunk | KeepResults | KeepOpinions | KeepUndecided | Distrust | KeepCrash | SetAside
