"""Of members of which some pairs say that the other one is wrong: who lies, when only so many do? Pure.

Honest members never contradict each other, so the liars touch every pair: they are a vertex cover of the pairs. How
many a cover needs is bounded from below by a matching, and the greedy one will do: it accuses nobody too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

Pair = frozenset[int]


def sure_liars(pairs: Collection[Pair], most: int) -> list[int]:
    """Who has lied for sure, when of the members, of whom these pairs contradict each other, at most `most` lie.

    Nobody when the pairs show that more lie: then nothing is sure.
    """
    found: list[int] = []
    left = set(pairs)
    while left:
        if _matching(left) > most:
            return []
        counted = Counter(rank for pair in left for rank in pair)
        sure = [rank for rank in counted if liars_needed(rank, left) > most]
        if not sure:
            break
        worst = max(sure, key=lambda rank: (counted[rank], rank))
        found.append(worst)
        left = {pair for pair in left if worst not in pair}
        most -= 1
    return found


def liars_needed(rank: int, pairs: Collection[Pair]) -> int:
    """How many liars there are at least, if this one is honest."""
    accused = {other for pair in pairs if rank in pair for other in pair - {rank}}
    return len(accused) + _matching({pair for pair in pairs if not pair & accused})


def _matching(pairs: Collection[Pair]) -> int:
    """Of how many pairs no two have a member in common; not always the most."""
    taken: set[int] = set()
    for pair in sorted(pairs, key=sorted):
        if not pair & taken:
            taken |= pair
    return len(taken) // 2
