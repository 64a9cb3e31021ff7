"""The owner's limit on what jobs send and receive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peer_daemon.links.turns import BURST_S, SendPace


def test_without_a_limit_nothing_waits():
    assert SendPace(0).wait(10**9, 0.0) == 0


def test_what_comes_after_a_large_part_waits_for_it():
    pace = SendPace(1000)
    assert pace.wait(2000, 10.0) == 0
    assert pace.wait(500, 10.0) == pytest.approx(2 - BURST_S)
    assert pace.wait(1, 10.0) == pytest.approx(2.5 - BURST_S)


def test_after_a_rest_only_a_short_burst_is_free():
    pace = SendPace(1000)
    pace.wait(100, 0.0)
    assert pace.wait(1000, 100.0) == 0
    assert pace.wait(1, 100.0) == pytest.approx(1 - BURST_S)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 5)), max_size=50))
def test_over_any_time_no_more_goes_than_the_limit_and_one_burst(parts: list[tuple[int, float]]):
    pace, now, gone, sent = SendPace(1000), 0.0, 0.0, 0
    for count, rest in parts:
        now = max(now + rest, gone)
        gone = now + pace.wait(count, now)
        assert sent <= 1000 * (gone + BURST_S) + 1e-6  # what went before this part began
        sent += count
