"""How many equal results a chunk needs, and which one counts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.kinds.map.opinions.quorum import (
    MOST_OPINIONS,
    Accepted,
    Undecided,
    Vote,
    WantsAnother,
    quorum_for,
    verdict,
)
from axonp2p.verification.rates import Trust


def _heard(*groups: int) -> list[Vote]:
    return [Vote(peer="abcdefghi"[number], group=group) for number, group in enumerate(groups)]


def test_one_result_is_enough_for_a_quorum_of_one() -> None:
    assert verdict(_heard(0), 1) == Accepted(0, ("a",))


def test_two_that_agree() -> None:
    assert verdict(_heard(0), 2) == WantsAnother(frozenset({"a"}))
    assert verdict(_heard(0, 0), 2) == Accepted(0, ("a", "b"))


def test_a_third_decides_between_two() -> None:
    assert verdict(_heard(0, 1), 2) == WantsAnother(frozenset({"a", "b"}))
    assert verdict(_heard(0, 1, 1), 2) == Accepted(1, agreed=("b", "c"), outvoted=("a",))


def test_two_liars_who_agree_do_not_outvote_a_quorum_of_three() -> None:
    assert verdict(_heard(1, 1, 0), 3) == WantsAnother(frozenset({"a", "b", "c"}))
    assert verdict(_heard(1, 1, 0, 0, 0), 3) == Accepted(0, agreed=("c", "d", "e"), outvoted=("a", "b"))


def test_nobody_can_tell_after_five() -> None:
    assert verdict(_heard(0, 1, 2, 3, 4), 2) == Undecided(("a", "b", "c", "d", "e"))


def test_it_is_told_as_soon_as_no_result_can_be_given_often_enough() -> None:
    assert verdict(_heard(0, 1, 2, 3), 3) == Undecided(("a", "b", "c", "d"))


@given(st.lists(st.integers(0, 3), max_size=9), st.integers(1, 5))
def test_whatever_comes_in_whatever_order(groups: list[int], quorum: int) -> None:
    opinions: list[Vote] = []
    for opinion in _heard(*groups):
        opinions.append(opinion)
        said = verdict(opinions, quorum)
        match said:
            case Accepted(group=group, agreed=agreed, outvoted=outvoted):
                assert len(agreed) == quorum
                assert {*agreed, *outvoted} == {one.peer for one in opinions}
                assert all(one.group == group for one in opinions if one.peer in agreed)
                return
            case Undecided():
                assert len(opinions) <= max(MOST_OPINIONS, 2 * quorum - 1)
                return
            case WantsAnother(asked=asked):
                assert asked == {one.peer for one in opinions}
    assert len(opinions) < max(MOST_OPINIONS, 2 * quorum - 1)


def test_a_quorum_that_is_named_holds_for_every_chunk() -> None:
    assert quorum_for(3, Trust(1000), lambda: 0.99) == 3


@pytest.mark.parametrize(("passed", "share"), [(0, 0.2), (9, 0.2), (10, 0.05), (40, 0.0125), (10_000, 0.0125)])
def test_auto_compares_the_less_the_more_a_peer_has_shown(passed: int, share: float) -> None:
    chance = random.Random(1).random
    drawn = sum(quorum_for(None, Trust(passed), chance) == 2 for _ in range(20_000))
    assert drawn / 20_000 == pytest.approx(share, rel=0.2)
