"""Hours of the week, as owners write them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import SettingsError
from peer_daemon.idle.hours import DAYS, Hours, when

MONDAY = datetime(2026, 11, 23)


def at(day: str, clock: str) -> datetime:
    hours, minutes = map(int, clock.split(":"))
    return MONDAY + timedelta(days=DAYS.index(day), hours=hours, minutes=minutes)


def test_without_hours_any_time_is_right() -> None:
    hours = Hours.parse([])
    assert hours.allow(at("Wed", "12:00"))
    assert hours.next_change(at("Wed", "12:00")) is None


def test_nights_belong_to_the_day_on_which_they_start() -> None:
    hours = Hours.parse(["Mon-Fri 18:00-08:00"])
    assert not hours.allow(at("Mon", "07:59"))  # Sunday's night is not lent
    assert not hours.allow(at("Mon", "17:59"))
    assert hours.allow(at("Mon", "18:00"))
    assert hours.allow(at("Tue", "07:59"))
    assert not hours.allow(at("Tue", "08:00"))
    assert hours.allow(at("Sat", "07:59"))  # Friday's night
    assert not hours.allow(at("Sat", "08:00"))


def test_sundays_night_reaches_into_monday() -> None:
    hours = Hours.parse(["sun 22:00-06:00"])
    assert hours.allow(at("Mon", "05:59"))
    assert not hours.allow(at("Mon", "06:00"))
    assert hours.next_change(at("Sun", "23:00")) == at("Mon", "06:00") + timedelta(days=7)


@pytest.mark.parametrize(
    ("entries", "inside", "outside"),
    [
        (["Sat,Sun"], ("Sun", "23:59"), ("Mon", "00:00")),
        (["22:00-06:00"], ("Thu", "05:00"), ("Thu", "21:00")),
        (["Fri-Mon 10:00-11:00"], ("Mon", "10:30"), ("Tue", "10:30")),
        (["Mon, Wed 00:00-24:00"], ("Wed", "23:59"), ("Thu", "00:00")),
        (["Mon-Fri 18:00-08:00", "Sat,Sun"], ("Sat", "12:00"), ("Mon", "07:00")),
    ],
)
def test_entries(entries: list[str], inside: tuple[str, str], outside: tuple[str, str]) -> None:
    hours = Hours.parse(entries)
    assert hours.allow(at(*inside))
    assert not hours.allow(at(*outside))


@pytest.mark.parametrize(
    ("entry", "now", "said"),
    [
        ("Mon-Fri 18:00-08:00", at("Mon", "12:00"), "at 18:00"),
        ("08:00-10:00", at("Mon", "12:00"), "tomorrow at 08:00"),
        ("Sat,Sun", at("Wed", "12:00"), "on Sat at 00:00"),
    ],
)
def test_the_next_time_is_said_as_people_do(entry: str, now: datetime, said: str) -> None:
    change = Hours.parse([entry]).next_change(now)
    assert change is not None
    assert when(change, now) == said


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Mon-Fri 18-8", "Mon-Fri 18:00-08:00"),
        ("Mo-Fr 6pm-8am", "Mon-Fri 18:00-08:00"),
        ("weekdays evenings", "Mon-Fri 18:00-24:00"),
        ("nights", "22:00-08:00"),
        ("Weekends", "Sat,Sun"),
        ("Mondays, Thurs 9-17", "Mon,Thu 09:00-17:00"),
        ("every day 9-10", "09:00-10:00"),
    ],
)
def test_what_people_type_is_understood(typed: str, meant: str) -> None:
    assert Hours.parse([typed]).stretches == Hours.parse([meant]).stretches


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "sometimes",
        "Mon-Fri 18",
        "M 9-17",
        "13pm-2pm",
        "25:00-26:00",
        "10:00-10:00",
        "Mon-Tue-Wed",
        "24:00-08:00",
        "10:75-11:00",
    ],
)
def test_what_is_not_understood_is_said(entry: str) -> None:
    with pytest.raises(SettingsError, match="not understood") as caught:
        Hours.parse([entry])
    assert "Mon-Fri" in caught.value.fix


@st.composite
def entries(draw: st.DrawFn) -> str:
    days = draw(st.lists(st.sampled_from(DAYS), max_size=3).map(",".join))
    start, end = draw(st.lists(st.integers(0, 24 * 60 - 1), min_size=2, max_size=2, unique=True))
    clock = f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"
    return draw(st.sampled_from([clock, days or clock, f"{days} {clock}".strip()]))


@given(st.lists(entries(), min_size=1, max_size=4), st.integers(0, 7 * 24 * 60 - 1))
def test_several_entries_allow_what_one_of_them_allows(several: list[str], minute: int) -> None:
    now = MONDAY + timedelta(minutes=minute)
    assert Hours.parse(several).allow(now) == any(Hours.parse([one]).allow(now) for one in several)


@given(st.lists(entries(), min_size=1, max_size=3), st.integers(0, 7 * 24 * 60 - 1))
def test_nothing_changes_before_the_next_change(several: list[str], minute: int) -> None:
    hours = Hours.parse(several)
    now = MONDAY + timedelta(minutes=minute, seconds=17)
    change = hours.next_change(now)
    if change is None:
        assert all(hours.allow(now + timedelta(minutes=step)) for step in range(0, 7 * 24 * 60, 7))
        return
    assert now < change <= now + timedelta(days=7)
    assert hours.allow(change) != hours.allow(now)
    assert hours.allow(change - timedelta(minutes=1)) == hours.allow(now)
