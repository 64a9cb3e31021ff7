"""Ticks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_cli.report.axes import counted, for_curve, linear, seconds_text, seconds_ticks

NUMBERS = st.floats(-1e30, 1e30)


@given(values=st.lists(NUMBERS, min_size=1, max_size=5))
def test_an_axis_holds_all_its_values_and_few_ticks(values: list[float]) -> None:
    axis = for_curve(values)
    slack = 1e-9 * max(abs(axis.least), abs(axis.most))
    assert axis.least <= min(values) + slack
    assert axis.most >= max(values) - slack
    assert 2 <= len(axis.ticks) <= 12
    assert all(0 <= axis.place(value) <= 1 for value in values)


def test_ticks_are_round_numbers() -> None:
    assert linear(0, 0.93).ticks == (0, 0.25, 0.5, 0.75, 1.0)
    assert linear(0.06, 2.31).ticks == (0, 1.0, 2.0, 3.0) or linear(0.06, 2.31).ticks[0] == 0
    assert for_curve([0.002, 5.0]).logarithmic
    assert not for_curve([0.5, 5.0]).logarithmic


@given(most=st.integers(1, 10**6))
def test_rounds_are_counted_from_one_in_few_steps(most: int) -> None:
    found = counted(most)
    assert found[0] == 1
    assert found == sorted(set(found))
    assert found[-1] <= most
    assert len(found) <= 10


def test_rounds_stand_at_fives_and_tens() -> None:
    assert counted(20) == [1, 5, 10, 15, 20]
    assert counted(6) == [1, 2, 3, 4, 5, 6]


@given(total=st.floats(0.01, 1e8))
def test_the_clock_has_few_ticks(total: float) -> None:
    ticks = seconds_ticks(total)
    assert ticks[0] == 0
    assert len(ticks) <= 8
    assert ticks[-1] <= total * (1 + 1e-6)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (0.5, "0.5 s"), (40, "40 s"), (120, "2 min"), (90, "1:30"), (5400, "1 h 30")]
)
def test_moments_as_people_write_them(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_what_is_not_finite_leaves_an_axis() -> None:
    assert for_curve([math.nan, 1.0, math.inf]).least < 1
