"""What the ribbon shows of a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import get_args
from xml.etree import ElementTree

import pytest

from peer_daemon.control.status import HistoryTold, SpanTold, State
from peer_daemon.page import picture
from peer_daemon.page.picture import DAY_S, DRAWN_AT_MOST, ribbon, stretches, summary, totals, up_to_now
from tests.laboratory.paper_steering import BUSY, DAY, FREE, HOUR, NOON, changed, span

SINCE = NOON - DAY_S


def wall(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def drawn(*spans: SpanTold) -> list[picture.Stretch]:
    return stretches(HistoryTold(spans=list(spans), happenings=[]), SINCE, NOON)


def test_a_day_begins_where_it_begins() -> None:
    [one] = drawn(span(30, 20, "training", "free", FREE))
    assert (one.began, one.ended, one.look) == (SINCE, NOON - 20 * HOUR, "ran")


def test_what_is_older_or_has_no_length_is_left_out() -> None:
    assert drawn(span(30, 25, "training", "free", FREE), span(3, 3, "ready", "free", FREE)) == []


def test_neighbours_alike_are_one_with_the_longer_ones_sentence() -> None:
    [one] = drawn(
        span(5, 4.9, "waiting", "busy", "firefox"),
        span(4.9, 4, "waiting", "busy", "cargo"),
        span(4, 3.8, "waiting", "program", "blender"),
    )
    assert (one.sentence, one.lasted) == ("cargo", pytest.approx(1.2 * HOUR))


def test_a_hole_stays_a_hole() -> None:
    assert len(drawn(span(5, 4, "training", "free", FREE), span(3, 2, "training", "free", FREE))) == 2


def test_on_battery_looks_unlike_other_waiting() -> None:
    looks = [one.look for one in drawn(span(5, 4, "waiting", "battery", "62 %"), span(4, 3, "waiting", "busy", BUSY))]
    assert looks == ["battery", "waited"]


def test_the_sums_make_a_day() -> None:
    sums = totals(stretches(DAY, SINCE, NOON), SINCE, NOON)
    assert sum(sums.values()) == pytest.approx(DAY_S)
    assert next(iter(sums)) == "ran"
    assert sums["off"] == pytest.approx(1.8 * HOUR)


def test_the_day_in_one_sentence() -> None:
    told = drawn(span(24, 6, "training", "free", FREE), span(6, 0, "paused", "paused", "you"))
    assert summary(told, SINCE, NOON) == "The last 24 h: ran a job 18 h, paused by you 6 h."
    assert summary([], SINCE, NOON) == "The last 24 h: not running 24 h."


def test_the_present_reaches_until_now_though_the_disk_is_a_minute_behind() -> None:
    told = HistoryTold(spans=[span(2, 1, "ready", "free", "-"), span(1, 0.9, "training", "free", "-")], happenings=[])
    now = up_to_now(told, changed(since=NOON - HOUR))
    assert [(one.look, one.ended) for one in stretches(now, SINCE, NOON)] == [("ready", NOON - HOUR), ("ran", NOON)]


def test_a_state_that_has_only_begun_is_on_the_ribbon_at_once() -> None:
    told = HistoryTold(spans=[span(2, 0.1, "ready", "free", "-")], happenings=[])
    seen = stretches(up_to_now(told, changed(state="paused", since=NOON - 9)), SINCE, NOON)
    assert [one.look for one in seen] == ["ready", "paused"]


def test_every_stretch_says_what_it_was_and_one_is_reached_by_tab() -> None:
    svg = ElementTree.fromstring(ribbon(stretches(DAY, SINCE, NOON), SINCE, NOON, wall))
    groups = [one for one in svg.iter("g") if "stretch" in one.get("class", "")]
    assert len(groups) == len(DAY.spans)
    assert groups[2].get("aria-label") == f"14:06 to 15:48 (1 h 42 min), waited: {BUSY}"
    assert groups[2].findtext("title") == groups[2].get("aria-label")
    assert [one.get("tabindex") for one in groups] == ["-1"] * (len(groups) - 1) + ["0"]
    assert len({one.get("id") for one in groups}) == len(groups)
    assert "style" not in ElementTree.tostring(svg, encoding="unicode")


def test_a_strangers_words_stay_words() -> None:
    svg = ribbon(drawn(span(3, 1, "waiting", "busy", '"><script>alert(1)</script>&')), SINCE, NOON, wall)
    assert "<script" not in svg
    ElementTree.fromstring(svg)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
def test_the_hours_are_whole_where_the_owner_lives(zone: timezone) -> None:
    svg = ElementTree.fromstring(ribbon([], SINCE, NOON, lambda at: datetime.fromtimestamp(at, zone)))
    hours = [text.text or "" for text in svg.iter("text")]
    assert 6 <= len(hours) <= 8
    assert all(hour.endswith(":00") and int(hour[:2]) % 3 == 0 for hour in hours)


def test_a_restless_day_stays_a_small_page() -> None:
    many = [span(20 - n / 60, 20 - (n + 1) / 60, ("ready", "training")[n % 2], "free", FREE) for n in range(1100)]
    assert len(drawn(*many)) == DRAWN_AT_MOST


@pytest.mark.parametrize("state", get_args(State))
def test_each_state_has_a_sign_of_its_own(state: State) -> None:
    ElementTree.fromstring(picture.tab_icon(state))
    ElementTree.fromstring(picture.sign(state))
    assert len({picture.sign(one) for one in get_args(State)}) == len(get_args(State))
