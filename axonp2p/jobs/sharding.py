"""Which member reads which shards of the data. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def assign(
    shards: int, members: Collection[int], *, before: Mapping[int, Collection[int]] | None = None
) -> dict[int, list[int]]:
    """The shards 0 to `shards` - 1 shared among the ranks in `members`: each shard once, loads nearly equal (by one).

    `before` is the previous answer. A member that is still there keeps its shards as far as balance allows, so
    when members leave, only the shards that they held move. Raises ValueError when nobody is there.
    """
    ranks = sorted(set(members))
    if not ranks:
        raise ValueError("shards need at least one member")
    held = {rank: sorted({shard for shard in (before or {}).get(rank, ()) if 0 <= shard < shards}) for rank in ranks}
    taken: set[int] = set()
    for rank in ranks:
        held[rank] = [shard for shard in held[rank] if shard not in taken]
        taken.update(held[rank])
    for shard in range(shards):
        if shard not in taken:
            held[_lightest(held)].append(shard)
    while len(held[most := _heaviest(held)]) - len(held[least := _lightest(held)]) > 1:
        held[least].append(held[most].pop())
    return {rank: sorted(held[rank]) for rank in ranks}


def _heaviest(held: Mapping[int, list[int]]) -> int:
    return max(held, key=lambda rank: (len(held[rank]), rank))


def _lightest(held: Mapping[int, list[int]]) -> int:
    return min(held, key=lambda rank: (len(held[rank]), rank))
