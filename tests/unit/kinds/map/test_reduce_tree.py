"""The tree of calls whose results are merged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.kinds.map.reduce_tree import ARITY, MOST_FOLDED, ReduceTree, fold_of


def merged(tree: ReduceTree, call: int) -> list[int]:
    """The items in the result of a call, in the order in which they are merged."""
    if not tree.merges(call):
        return list(tree.items_of(call))
    return [item for part in tree.children_of(call) for item in merged(tree, part)]


@given(items=st.integers(1, 3000), fold=st.integers(1, 200))
def test_the_last_call_merges_every_item_once_and_in_their_order(items: int, fold: int) -> None:
    tree = ReduceTree(items, fold)

    assert merged(tree, tree.calls - 1) == list(range(items))


@given(items=st.integers(1, 3000), fold=st.integers(1, 200))
def test_each_call_but_the_last_is_part_of_one_other(items: int, fold: int) -> None:
    tree = ReduceTree(items, fold)
    parts = [(part, call) for call in range(tree.calls) for part in tree.children_of(call)]

    assert parts == [(call, tree.parent_of(call)) for call in range(tree.calls - 1)]
    assert tree.parent_of(tree.calls - 1) is None


@given(items=st.integers(1, 3000), fold=st.integers(1, 200))
def test_no_merge_is_of_one_result_or_of_too_many(items: int, fold: int) -> None:
    tree = ReduceTree(items, fold)

    assert all(2 <= len(tree.children_of(call)) <= ARITY for call in range(tree.leaves, tree.calls))


def test_what_is_above_a_call() -> None:
    tree = ReduceTree(items=100, fold=3)

    assert (tree.leaves, tree.calls) == (34, 40)
    assert list(tree.items_of(33)) == [99]
    assert tree.ancestors_of([0]) == {34, 39}
    assert tree.ancestors_of([0, 33]) == {34, 38, 39}
    assert tree.ancestors_of([39]) == set()


def test_one_call_is_enough_for_few_items() -> None:
    tree = ReduceTree(items=2, fold=5)

    assert (tree.leaves, tree.calls, tree.merges(0)) == (1, 1, False)


def test_a_call_folds_more_items_where_there_are_many() -> None:
    assert fold_of(100, peers=4, cores=1) == 1
    assert fold_of(870, peers=4, cores=1) == 6
    assert fold_of(10_000_000, peers=4, cores=1) == MOST_FOLDED
