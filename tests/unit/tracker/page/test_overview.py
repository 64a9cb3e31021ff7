"""Sums over the last day, as the operator's page draws them."""

from __future__ import annotations

from tests.laboratory.paper_overview import DAY, NOON, OVERVIEWS
from tracker.page.overview import BARS, DayOfSamples, Sample, bars, levels


def test_a_sum_grows_by_what_came_in_each_quarter_of_an_hour() -> None:
    grown = bars(DAY, "announces", NOON)
    assert len(grown) == BARS
    assert grown[:15] == [None] * 15  # it was started 20 hours ago
    assert grown[50] == grown[80] == 15 * 41


def test_a_start_that_set_the_sums_to_nothing_is_no_fall() -> None:
    before, after = Sample(NOON - 60, 1, 90, 0, 0, 0, 0), Sample(NOON, 1, 2, 0, 0, 0, 0)
    assert bars([before, after], "announces", NOON)[-1] == 0


def test_levels_are_the_last_of_each_stretch() -> None:
    assert levels(DAY, "alive", NOON)[-1] == DAY[-1].alive


def test_only_a_day_is_kept() -> None:
    day = DayOfSamples()
    for minute in range(2000):
        day.add(Sample(60.0 * minute, 0, 0, 0, 0, 0, 0))
    assert len(day.all) == 1441


def test_the_word_says_whether_it_can_work_and_whether_it_is_alone() -> None:
    words = {name: one.word for name, one in OVERVIEWS.items()}
    assert words == {
        "busy": "SERVES",
        "empty": "SERVES",
        "others dead": "ALONE",
        "other log false": "SERVES",
        "disk almost full": "SERVES",
        "disk damaged": "TROUBLE",
    }


def test_a_disk_is_low_below_the_alerts_number() -> None:
    low = {name for name, one in OVERVIEWS.items() if one.disk_is_low}
    assert low == {"disk almost full", "disk damaged"}
