"""How far apart marks are."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.training.spot_checks.pace import HASH_BYTES_S, SHARE, MarkPace
from axonp2p.verification.rates import SEGMENT_STEPS
from tests.unit.training.spot_checks.test_scheduler import BATCH, END, START, mark, report


def told(step_s, mark_s, *, steps=40, marks=6, size=0):
    """A round in which a step takes so long, and a mark."""
    all_marks = [msgspec.structs.replace(mark(0, START if not n else END), size=size) for n in range(marks)]
    spent = marks * mark_s
    return report(samples=steps * BATCH, train_seconds=steps * step_s + spent, mark_seconds=spent, marks=all_marks)


def paced(*rounds):
    pace = MarkPace(BATCH)
    for reports in rounds:
        pace.note(reports)
    return pace


@pytest.mark.parametrize(
    ("step_s", "mark_s", "every"),
    [
        (0.1, 0.001, 8),
        (0.005, 0.0002, 8),  # six marks in forty steps: 0.6 %
        (0.005, 0.00145, 16),
        (0.002, 0.0007, 20),
        (0.0006, 0.0002, 20),
        (0.0006, 0.0005, 40),  # more than a few percent, and no farther than a leg
        (0.0001, 1.0, 40),
    ],
)
def test_marks_are_rarer_where_steps_are_fast(step_s, mark_s, every):
    reports = [told(step_s, mark_s)] * 3
    assert paced(reports, reports).widen(8, 40) == every


def test_nothing_is_believed_of_one_round_nor_of_one_member():
    slow, usual = told(0.005, 0.1), told(0.005, 0.0001)
    assert paced([slow] * 3).widen(8, 40) == 8
    assert paced([slow, usual, usual], [slow, usual, usual]).widen(8, 40) == 8
    assert paced([slow] * 3, [usual] * 3).widen(8, 40) == 8


def test_bytes_take_time_to_be_hashed():
    size = round(HASH_BYTES_S * 0.0015)
    reports = [told(0.005, 0.0, size=size)]
    assert paced(reports, reports).widen(8, 40) == 16


def test_segments_never_become_shorter_again():
    dear, cheap = [told(0.002, 0.0007)], [told(0.1, 0.0)]
    pace = paced(dear, dear)
    assert pace.widen(8, 40) == 20
    for _ in range(10):
        pace.note(cheap)
    assert pace.widen(8, 40) == 20
    assert pace.widen(30, 40) == 30
    assert pace.widen(8, 10) == 10
    assert pace.widen(0, 40) == 0


@given(st.floats(1e-5, 10), st.floats(0, 10), st.sampled_from(SEGMENT_STEPS), st.integers(1, 500))
def test_marks_take_their_share_or_are_as_rare_as_they_may_be(step_s, mark_s, every, leg):
    every = min(every, leg)
    reports = [told(step_s, mark_s)]
    wide = paced(reports, reports).widen(every, leg)
    assert every <= wide <= min(leg, SEGMENT_STEPS[-1])
    share = (-(-leg // wide) + 1) * mark_s / (leg * step_s)
    assert share <= SHARE * 1.01 or wide == min(leg, SEGMENT_STEPS[-1])
