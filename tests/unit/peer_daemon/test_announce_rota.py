from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from peer_daemon.announce_rota import WANTED, Rota


def test_the_first_two_get_the_row():
    rota = Rota(3)
    assert rota.due(0) == [0, 1]
    rota.answered(0, 300, now=0)
    rota.answered(1, 100, now=0)
    assert rota.due(0) == []
    assert rota.wait(0) == 100
    assert rota.due(100) == [1]


def test_one_tracker_is_enough_where_there_is_one():
    rota = Rota(1)
    assert rota.due(0) == [0]
    rota.answered(0, 300, now=0)
    assert rota.wait(10) == 290


def test_a_third_stands_in_for_one_that_is_away_until_it_is_back():
    rota = Rota(3)
    rota.failed(0, now=0, chance=0)
    rota.answered(1, 300, now=0)
    assert rota.due(0) == [2]
    rota.answered(2, 300, now=0)
    assert rota.wait(0) == 1
    assert rota.due(1) == [0]
    assert rota.answered(0, 300, now=1) is True
    assert rota.due(300.5) == [1]
    assert rota.may_know_us() == [0, 1, 2]


def test_it_asks_less_and_less_often_and_says_so_once():
    rota = Rota(1)
    now, waits, worth_a_line = 0.0, [], []
    for _ in range(9):
        worth_a_line.append(rota.failed(0, now, chance=0))
        waits.append(rota.wait(now))
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert worth_a_line == [True] + [False] * 8
    assert rota.answered(0, 300, now) is True
    assert rota.failed(0, now + 300, chance=1) is True


def test_news_goes_to_those_who_have_the_row_and_does_not_hurry_the_others():
    rota = Rota(2)
    rota.answered(0, 300, now=0)
    rota.failed(1, now=0, chance=0)
    rota.changed()
    assert rota.due(0.5) == [0]


def test_no_trackers_wait_long():
    assert Rota(0).wait(5) > 60


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.floats(0, 400)), max_size=30))
def test_somebody_is_always_due_some_day(count, history):
    rota = Rota(count)
    now = 0.0
    for index, answered, passed in history:
        now += passed
        if index < count:
            if answered:
                rota.answered(index, 300, now)
            else:
                rota.failed(index, now, chance=0.5)
    rounding = 1e-6
    assert 0 <= rota.wait(now) <= 300 + rounding
    due = rota.due(now + rota.wait(now) + rounding)
    assert due
    assert len(due) <= max(WANTED, count)
