"""How many peers must give the same result of a chunk before it counts. Pure; chance is passed in.

BOINC's replication with its validator apart: results are put into groups of equal ones elsewhere (`agreement`), and
here only the groups are counted. `quorum = "auto"` is BOINC's adaptive replication: one result is enough, except for
chunks that are drawn, the more often the less its peer has shown (`verification.rates`). A chunk is drawn only once its
result is here, so its peer does not know which of its results will be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from axonp2p.verification.rates import Trust, share_redone

WISHED_SHARE = 0.05
"""Of the chunks of a peer with a record are done again under "auto": four times as many of a new one's."""
LARGEST_QUORUM = 5
MOST_OPINIONS = 5
"""Results of one chunk at most, unless the quorum itself asks for more: then nobody can tell which is right."""


@dataclass(frozen=True)
class Vote:
    """The result of one peer."""

    peer: str
    group: int
    """Results of the same group are equal."""


@dataclass(frozen=True)
class Accepted:
    """This result counts."""

    group: int
    agreed: tuple[str, ...]
    """Peers that gave it, the first one first."""
    outvoted: tuple[str, ...] = ()
    """Peers that gave another one."""


@dataclass(frozen=True)
class WantsAnother:
    """One more peer has to do the chunk, none of these."""

    asked: frozenset[str]


@dataclass(frozen=True)
class Undecided:
    """Too many peers did the chunk, and no result was given often enough."""

    peers: tuple[str, ...]


Verdict = Accepted | WantsAnother | Undecided


def verdict(opinions: Sequence[Vote], quorum: int) -> Verdict:
    """The verdict on the results so far, in the order in which they came. `quorum` of them must be equal."""
    sizes = Counter(opinion.group for opinion in opinions)
    if sizes:
        group, size = sizes.most_common(1)[0]
        if size >= quorum:
            agreed = tuple(opinion.peer for opinion in opinions if opinion.group == group)
            return Accepted(group, agreed, tuple(opinion.peer for opinion in opinions if opinion.group != group))
    # The largest group may still grow by all that are left to ask.
    left = max(MOST_OPINIONS, 2 * quorum - 1) - len(opinions)
    if max(sizes.values(), default=0) + left < quorum:
        return Undecided(tuple(opinion.peer for opinion in opinions))
    return WantsAnother(frozenset(opinion.peer for opinion in opinions))


def quorum_for(wished: int | None, trust: Trust, chance: Callable[[], float]) -> int:
    """How many equal results a chunk needs whose first one just came of a peer with this record; None: "auto"."""
    if wished is not None:
        return wished
    return 2 if chance() < share_redone(trust, WISHED_SHARE) else 1
