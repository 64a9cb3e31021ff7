"""Who owns how much of the vector. Pure.

With n members, of which member i owns the share w of the vector, i sends its values of all other slices (1 - w) and
the mean of its own to all others (w (n - 1)): together 1 + w (n - 2) vectors, and it receives as much. hivemind
(github.com/learning-at-home/hivemind, `load_balance_peers`) minimises the time of the slowest, the largest
(1 + w (n - 2)) / bandwidth, by linear programming. There is no need to: in the time t member i can own up to
(t bandwidth - 1) / (n - 2), all members together own 1, and t cannot be less than the slowest needs to send its own
vector once; from that both t and all shares follow in closed form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

WHOLE = 2**20
"""The sum of all shares, but for rounding."""


def slices(values: int, members: Sequence[int], shares: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Each member's slice of a vector of `values`, in proportion to its share, in the order given.

    The same integers on every machine. At least one share must be above 0.
    """
    bounds = [0, *(reached * values // sum(shares) for reached in accumulate(shares))]
    return {member: (bounds[at], bounds[at + 1]) for at, member in enumerate(members)}


def shares_for(
    upload: Mapping[int, float], download: Mapping[int, float], *, cut: Collection[frozenset[int]] = ()
) -> dict[int, int]:
    """The shares with which the slowest member is ready soonest; `upload` and `download` in bytes a second, by rank.

    Who cannot reach one of the others (a pair in `cut`) owns nothing. Raises `ValueError` when nobody is left to.
    """
    pace = {rank: max(1.0, min(upload[rank], download[rank])) for rank in sorted(upload)}
    apart = {rank for pair in cut if pair <= pace.keys() for rank in pair}
    owners = [rank for rank in pace if rank not in apart]
    if not owners:
        raise ValueError("every member is cut off from another one: none can own a slice")
    others = len(pace) - 2
    within = max((others + len(owners)) / sum(pace[rank] for rank in owners), 1 / min(pace.values()))
    room = {rank: max(0.0, within * pace[rank] - 1) for rank in owners}
    if others <= 0 or sum(room.values()) < 1e-9:
        # Of two, each sends one vector whoever owns it: then only what adding up costs is shared.
        room = dict.fromkeys(owners, 1.0)
    whole = sum(room.values())
    return {rank: round(room.get(rank, 0.0) / whole * WHOLE) for rank in pace}
