"""Partials of `reduce`: which are merged next, in which order, and that nothing is lost or counted twice."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.kinds.map.merge_tree import ARITY, MOST_MERGED_BYTES, MergeTree, Partial


def _chunks(count: int, each: int = 1) -> list[Partial]:
    return [Partial(number * each, (number + 1) * each) for number in range(count)]


def test_one_chunk_is_the_result() -> None:
    tree = MergeTree(3)
    assert tree.add(Partial(0, 3, bytes=5))
    assert tree.take() == []
    assert tree.result == Partial(0, 3, bytes=5)


def test_the_last_ones_are_merged_once_all_are_there() -> None:
    tree = MergeTree(3)
    tree.add(Partial(2, 3))
    tree.add(Partial(0, 1))
    assert tree.take() == []
    tree.add(Partial(1, 2))
    [merge] = tree.take()
    assert merge == (Partial(0, 1), Partial(1, 2), Partial(2, 3))
    assert tree.take() == []
    assert tree.result is None
    assert tree.merged(0, 3, 7) == merge
    assert tree.result == Partial(0, 3, 1, 7)


def test_a_full_group_is_merged_while_others_run() -> None:
    tree = MergeTree(100)
    for partial in _chunks(ARITY + 3):
        tree.add(partial)
    assert tree.take() == [tuple(_chunks(ARITY))]


def test_only_neighbours_are_merged() -> None:
    tree = MergeTree(100)
    for partial in _chunks(ARITY + 1):
        if partial.first != 3:
            tree.add(partial)
    assert tree.take() == []


def test_large_partials_are_merged_sooner() -> None:
    tree = MergeTree(100)
    large = [Partial(number, number + 1, bytes=MOST_MERGED_BYTES) for number in range(3)]
    for partial in large:
        tree.add(partial)
    assert tree.take() == [(large[0], large[1])]


def test_what_overlaps_is_dropped() -> None:
    tree = MergeTree(10)
    assert tree.add(Partial(2, 5))
    for first, end in ((2, 5), (0, 3), (4, 6), (3, 4), (0, 10), (9, 11), (5, 5)):
        assert not tree.add(Partial(first, end))
    assert tree.add(Partial(5, 6))
    assert tree.add(Partial(0, 2))


def test_what_overlaps_a_merge_under_way_is_dropped() -> None:
    tree = MergeTree(2, [Partial(0, 1), Partial(1, 2)])
    assert len(tree.take()) == 1
    assert not tree.add(Partial(0, 1))


def test_a_merge_that_came_to_nothing_begins_again() -> None:
    tree = MergeTree(2, [Partial(0, 1), Partial(1, 2)])
    merges = tree.take()
    tree.put_back(0, 2)
    assert tree.take() == merges


@given(st.integers(1, 120), st.randoms(use_true_random=False))
def test_in_whatever_order_they_come_each_item_is_in_the_result_once_and_in_order(
    items: int, chance: random.Random
) -> None:
    bounds = sorted({0, items, *(chance.randint(0, items) for _ in range(chance.randint(0, items)))})
    chunks = [Partial(first, end) for first, end in pairwise(bounds)]
    chance.shuffle(chunks)
    tree, values = MergeTree(items), dict[tuple[int, int], list[int]]()
    under_way: list[tuple[Partial, ...]] = []
    while tree.result is None:
        if chunks and (not under_way or chance.random() < 0.6):
            chunk = chunks.pop()
            assert tree.add(chunk)
            values[chunk.first, chunk.end] = list(range(chunk.first, chunk.end))
        elif under_way:
            merge = under_way.pop(chance.randrange(len(under_way)))
            first, end = merge[0].first, merge[-1].end
            if chance.random() < 0.2:
                tree.put_back(first, end)
            else:
                merged = [item for one in tree.merged(first, end, 0) for item in values.pop((one.first, one.end))]
                values[first, end] = merged
        under_way += tree.take()
    assert values == {(0, items): list(range(items))}
