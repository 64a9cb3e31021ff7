from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from peer_daemon.control.status import SpanTold
from peer_daemon.history.spans import GAP_S, laid_out, lasting


def span(began, ended, state="ready"):
    return SpanTold(began=began, ended=ended, state=state, why="free", sentence=state)


def test_a_span_lasts_as_long_as_somebody_says_so():
    first = span(100, 100)
    assert lasting(first, 160) == span(100, 160)


def test_a_night_asleep_is_a_gap():
    assert lasting(span(100, 160), 160 + GAP_S + 1) == span(161 + GAP_S, 161 + GAP_S)


def test_a_clock_that_is_corrected_by_seconds_changes_nothing():
    assert lasting(span(100, 160), 157) == span(100, 160)


def test_a_clock_that_goes_back_an_hour_begins_anew_there():
    assert lasting(span(9000, 9600), 6000) == span(6000, 6000)


def test_where_two_claim_the_same_hour_the_later_written_one_is_right():
    told = laid_out([span(0, 100, "ready"), span(100, 500, "waiting"), span(200, 300, "training")])
    assert told == [
        span(0, 100, "ready"),
        span(100, 200, "waiting"),
        span(200, 300, "training"),
        span(300, 500, "waiting"),
    ]


def test_a_clock_that_began_in_1970_hides_nothing():
    told = laid_out([span(5000, 6000, "training"), span(0, 60, "ready"), span(6100, 6200, "waiting")])
    assert [one.state for one in told] == ["ready", "training", "waiting"]


def test_only_the_present_may_have_no_length():
    assert laid_out([span(5, 5), span(5, 9, "waiting"), span(9, 9, "paused")]) == [
        span(5, 9, "waiting"),
        span(9, 9, "paused"),
    ]
    assert laid_out([]) == []


@st.composite
def written(draw):
    """Spans as the book writes them, under a clock that does what it likes."""
    spans = []
    for number in range(draw(st.integers(1, 12))):
        began = draw(st.integers(0, 60))
        spans.append(span(began, began + draw(st.integers(0, 40)), str(number)))
    return spans


@given(written())
def test_each_moment_belongs_to_the_last_written_span_that_claims_it(spans):
    told = laid_out(spans)
    assert all(one.began < one.ended for one in told if one is not spans[-1])
    assert all(before.ended <= after.began for before, after in itertools.pairwise(told))
    for moment in range(101):
        claims = [one.state for one in spans if one.began <= moment < one.ended]
        owners = [one.state for one in told if one.began <= moment < one.ended]
        assert owners == claims[-1:]
