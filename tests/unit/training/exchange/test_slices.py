from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.training.exchange.terms import WHOLE, shares_for, slices

MBIT = 125_000.0


@given(
    st.integers(0, 10**9),
    st.lists(st.integers(0, 2**20), min_size=1, max_size=64).filter(any),
)
def test_slices_cover_the_vector_in_proportion(values, shares):
    members = list(range(len(shares)))
    found = slices(values, members, shares)
    assert [begin for begin, _ in found.values()] == [0, *(end for _, end in found.values())][:-1]
    assert found[members[-1]][1] == values
    for member, share in zip(members, shares, strict=True):
        begin, end = found[member]
        assert abs((end - begin) - values * share / sum(shares)) <= 1
        assert share or begin == end


def seconds(shares, pace):
    """What the slowest member needs for one vector of one byte."""
    whole = sum(shares.values())
    return max((1 + (len(pace) - 2) * shares[rank] / whole) / pace[rank] for rank in pace)


def shares_of(pace, **cut):
    return shares_for(pace, dict.fromkeys(pace, 1e9), **cut)


def test_equal_lines_own_equal_slices():
    assert len(set(shares_of(dict.fromkeys(range(4), 20 * MBIT)).values())) == 1


def test_a_line_of_a_tenth_owns_nothing_and_the_others_lose_nothing_by_it():
    pace = {0: 20 * MBIT, 1: 20 * MBIT, 2: 20 * MBIT, 3: 2 * MBIT}
    shares = shares_of(pace)
    assert shares[3] == 0
    assert seconds(shares, pace) == pytest.approx(1 / pace[3])


def test_the_slower_direction_counts():
    shares = shares_for({0: 100.0, 1: 100.0, 2: 100.0}, {0: 50.0, 1: 100.0, 2: 100.0})
    assert shares == shares_for({0: 50.0, 1: 100.0, 2: 100.0}, dict.fromkeys(range(3), 100.0))
    assert shares[0] < shares[1] == shares[2]


def test_of_two_both_own_half_and_one_owns_all():
    assert shares_of({0: 5.0, 1: 500.0}) == {0: WHOLE // 2, 1: WHOLE // 2}
    assert shares_of({7: 5.0}) == {7: WHOLE}


@given(st.lists(st.floats(1.0, 100.0), min_size=3, max_size=5))
def test_no_other_shares_are_faster(paces):
    pace = dict(enumerate(paces))
    best = seconds(shares_of(pace), pace)
    steps = [cuts for cuts in itertools.product(range(7), repeat=len(paces)) if sum(cuts) == 6]
    for cuts in steps:
        assert best <= seconds(dict(enumerate(cuts)), pace) * (1 + 1e-4)


def test_two_who_cannot_reach_each_other_own_nothing():
    pace = dict.fromkeys(range(4), 10.0)
    shares = shares_of(pace, cut=[frozenset({1, 2})])
    assert [rank for rank, share in shares.items() if share] == [0, 3]
    assert shares_of(pace, cut=[frozenset({1, 9})]) == shares_of(pace)


def test_when_everyone_is_cut_off_from_someone_nobody_can_own():
    with pytest.raises(ValueError, match="none can own a slice"):
        shares_of(dict.fromkeys(range(4), 10.0), cut=[frozenset({0, 1}), frozenset({2, 3})])


@given(
    st.dictionaries(st.integers(0, 63), st.floats(0, 1e12), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), max_size=3),
)
def test_shares_always_fit_an_order(pace, pairs):
    cut = [frozenset(pair) for pair in pairs if pair[0] != pair[1]]
    try:
        shares = shares_of(pace, cut=cut)
    except ValueError:
        return
    assert shares.keys() == pace.keys()
    assert any(shares.values())
    assert all(0 <= share <= 2**20 for share in shares.values())
