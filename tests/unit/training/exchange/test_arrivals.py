from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axonp2p.training.exchange.arrivals import LEAST_S, ArrivalTimes


def heard(*times, rank=1):
    arrivals = ArrivalTimes()
    for time in times:
        arrivals.heard(rank, time)
    return arrivals


def test_who_was_never_heard_is_waited_for_with_patience():
    assert heard(0.5, rank=2).deadline_after(1, 30.0) == 30.0


def test_steady_members_are_waited_for_just_longer_than_usual():
    assert heard(*[3.0] * 5).deadline_after(1, 30.0) == 3.0 + LEAST_S


def test_who_varies_is_given_more():
    assert heard(1, 2, 3, 2, 1).deadline_after(1, 30.0) > 3.5


def test_times_that_lie_on_one_side_count():
    """One who is mostly here already, and sometimes half a second later."""
    assert heard(0, 0.3, 0, 0.5, 0).deadline_after(1, 30.0) > 0.5


def test_one_slow_time_is_forgotten():
    arrivals = heard(60, *[1.0] * 7)
    assert arrivals.deadline_after(1, 1000.0) > 10
    arrivals.heard(1, 1.0)
    assert arrivals.deadline_after(1, 1000.0) < 1.5


def test_who_was_missed_is_waited_for_longer_each_time():
    arrivals, waited = heard(*[1.0] * 8), []
    for _ in range(6):
        waited.append(arrivals.deadline_after(1, 30.0))
        arrivals.missed(1, waited[-1])
    assert waited == sorted(set(waited))
    assert waited[-1] > 10


@given(st.lists(st.floats(-5, 1e6), max_size=20), st.floats(0.2, 1e4))
def test_never_longer_than_patience_never_less_than_a_moment(times, patience):
    assert LEAST_S <= heard(*times).deadline_after(1, patience) <= patience
