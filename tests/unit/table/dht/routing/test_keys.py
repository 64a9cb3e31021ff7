"""Ids and keys: the same from the same, and shards nest."""

from __future__ import annotations

from hashlib import sha1
from itertools import islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.table.dht.routing.keys import DEEPEST, index_key, node_id, page_order, row_key, shard_bits, spread_places

public_keys = st.binary(min_size=32, max_size=32)


def test_keys_are_what_the_page_says() -> None:
    key = bytes(range(32))
    assert node_id(key) == sha1(b"axon/dht/node/" + key).digest()
    assert row_key(key) == sha1(b"axon/1/p/" + key).digest()
    assert index_key("torch2|gpu0|3", "01") == sha1(b"axon/1/i/torch2|gpu0|3/01").digest()


@given(public_keys, st.integers(0, DEEPEST - 1))
def test_a_shard_lies_inside_the_one_above(key: bytes, depth: int) -> None:
    assert len(shard_bits(key, depth)) == depth
    assert shard_bits(key, depth + 1)[:-1] == shard_bits(key, depth)
    assert set(shard_bits(key, depth)) <= {"0", "1"}


def test_pages_are_in_another_order_than_shards() -> None:
    keys = [number.to_bytes(32) for number in range(2000)]
    inside = [key for key in keys if shard_bits(key, 4) == "0101"]
    places = sorted(page_order(key)[0] for key in inside)
    assert places[0] < 32
    assert places[-1] > 224


@given(st.integers(0, 2**64 - 1), st.integers(2, 16))
def test_places_in_a_row_lie_far_from_each_other(begin: int, count: int) -> None:
    places = sorted(int.from_bytes(place) for place in islice(spread_places(begin), count))
    gaps = [after - before for before, after in pairwise([*places, places[0] + 2**64])]
    assert sum(gaps) == 2**64
    assert min(gaps) > 2**64 / count / 2.7
    assert max(gaps) < 2**64 / count * 2.7
