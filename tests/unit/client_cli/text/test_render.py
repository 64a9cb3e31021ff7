"""Numbers and tables as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_cli.text import render


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min 0 s"), (75, "1 min 15 s"), (3780, "1 h 3 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert render.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0"),
        (31.24, "31.2"),
        (412.04, "412"),
        (1234567, "1,234,567"),
        (0.0017213, "0.00172"),
        (1e-12, "<0.000000001"),
    ],
)
def test_credits_show_three_digits_that_count(amount: float, text: str) -> None:
    assert render.credits_text(amount) == text


@given(st.floats(min_value=1e-8, max_value=99))
def test_small_credits_are_never_shown_as_nothing(amount: float) -> None:
    shown = float(render.credits_text(amount))
    assert shown == pytest.approx(amount, rel=0.01)


def test_accuracy_is_a_percentage_and_other_metrics_are_not() -> None:
    assert render.metric_text("accuracy", 0.9667) == "accuracy 96.7 %"
    assert render.metric_text("perplexity", 12.345678) == "perplexity 12.35"
