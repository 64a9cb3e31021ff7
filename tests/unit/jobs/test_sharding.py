"""Who reads which shards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.jobs.sharding import assign

counts = st.integers(1, 64)
rosters = st.sets(st.integers(0, 63), min_size=1, max_size=16)


@given(counts, rosters)
def test_every_shard_is_read_once_and_loads_are_equal_by_one(shards: int, members: set[int]) -> None:
    shares = assign(shards, members)
    assert set(shares) == members
    assert sorted(shard for share in shares.values() for shard in share) == list(range(shards))
    loads = [len(share) for share in shares.values()]
    assert max(loads) - min(loads) <= 1


@given(counts, rosters, st.data())
def test_when_members_leave_only_their_shards_move(shards: int, members: set[int], data: st.DataObject) -> None:
    before = assign(shards, members)
    staying = data.draw(st.sets(st.sampled_from(sorted(members)), min_size=1))
    after = assign(shards, staying, before=before)
    assert all(set(before[rank]) <= set(after[rank]) for rank in staying)
    assert sorted(shard for share in after.values() for shard in share) == list(range(shards))
    loads = [len(share) for share in after.values()]
    assert max(loads) - min(loads) <= 1


@given(counts, rosters, rosters)
def test_who_joins_gets_a_fair_share(shards: int, members: set[int], others: set[int]) -> None:
    shares = assign(shards, others, before=assign(shards, members))
    assert sorted(shard for share in shares.values() for shard in share) == list(range(shards))
    loads = [len(share) for share in shares.values()]
    assert max(loads) - min(loads) <= 1


@given(counts, st.lists(st.integers(0, 63), min_size=1, unique=True))
def test_the_order_of_members_does_not_matter(shards: int, members: list[int]) -> None:
    assert assign(shards, members) == assign(shards, members[::-1])


@given(counts, rosters, st.dictionaries(st.integers(0, 63), st.lists(st.integers(-5, 99), max_size=9), max_size=9))
def test_a_strange_past_does_no_harm(shards: int, members: set[int], before: dict[int, list[int]]) -> None:
    shares = assign(shards, members, before=before)
    assert sorted(shard for share in shares.values() for shard in share) == list(range(shards))


def test_shards_need_a_member() -> None:
    with pytest.raises(ValueError, match="at least one member"):
        assign(4, [])
