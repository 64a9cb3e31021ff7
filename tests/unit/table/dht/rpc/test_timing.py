"""How long a node is waited for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.table.dht.rpc.timing import MOST_ADDRESSES, Timing

NEAR = ("8.8.8.8", 1)
FAR = ("9.9.9.9", 2)


def test_a_known_address_gets_twice_its_round_trip() -> None:
    timing = Timing()
    timing.answered(NEAR, 0.03)
    assert timing.soft_limit(NEAR) == pytest.approx(0.11)


def test_an_unknown_one_gets_what_all_others_need() -> None:
    timing = Timing()
    before = timing.soft_limit(FAR)
    for _ in range(200):
        timing.answered(NEAR, 0.02)
    assert timing.soft_limit(FAR) < before / 4
    assert timing.soft_limit(FAR) >= 0.05


@given(st.lists(st.floats(0, 100), max_size=50))
def test_limits_stay_in_their_range(times: list[float]) -> None:
    timing = Timing()
    for rtt in times:
        timing.answered(NEAR, rtt)
        assert 0.05 <= timing.soft_limit(NEAR) <= 1.0
        assert 0.05 <= timing.soft_limit(FAR) <= 1.0


def test_a_question_sent_twice_measures_nothing() -> None:
    timing = Timing()
    before = timing.soft_limit(NEAR)
    timing.answered(NEAR, None)
    assert timing.soft_limit(NEAR) == before


def test_silence_costs_twice_as_long_each_time_and_an_answer_ends_it() -> None:
    timing = Timing()
    now, rests = 0.0, []
    for _ in range(9):
        timing.silent(NEAR, now)
        timing.silent(NEAR, now + 1)
        rest = next(wait for wait in range(1, 10_000) if not timing.rests(NEAR, now + wait))
        rests.append(rest)
        now += rest
    assert rests == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    timing.silent(NEAR, now)
    assert timing.rests(NEAR, now + 1)
    timing.answered(NEAR, 0.1)
    assert not timing.rests(NEAR, now + 1)
    assert not timing.rests(FAR, now)


def test_what_is_remembered_is_bounded() -> None:
    timing = Timing()
    for port in range(1, MOST_ADDRESSES + 2):
        timing.silent(("8.8.8.8", port), 0.0)
        timing.silent(("8.8.8.8", port), 1.0)
    assert not timing.rests(("8.8.8.8", 1), 2.0)
    assert timing.rests(("8.8.8.8", 2), 2.0)
