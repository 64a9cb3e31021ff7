from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.ledger.balances import credits_of
from peer_daemon.control.status import DoneNow
from peer_daemon.earnings.earnings import Earnings

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86400
MANY = 10**15


def at(*moment, zone=BERLIN):
    return int(datetime(*moment, tzinfo=zone).timestamp())


def test_today_begins_at_midnight_where_the_machine_stands():
    earnings = Earnings()
    earnings.signed(at(2027, 1, 19, 23, 59), "a", MANY, 64)
    earnings.signed(at(2027, 1, 20, 0, 0), "a", 2 * MANY, 64)
    credits = earnings.credits(at(2027, 1, 20, 8), BERLIN)
    assert credits.today == credits.days[-1] == credits_of(2 * MANY)
    assert credits.days[-2] == credits_of(MANY)
    assert len(credits.days) == 30


def test_the_day_turns_without_a_new_receipt():
    earnings = Earnings()
    earnings.signed(at(2027, 1, 20, 23), "a", MANY, 64)
    assert earnings.credits(at(2027, 1, 20, 23, 59), BERLIN).today == credits_of(MANY)
    assert earnings.credits(at(2027, 1, 21), BERLIN).today == 0
    assert earnings.credits(at(2027, 1, 21), BERLIN).days[-2] == credits_of(MANY)


def test_the_night_of_the_changed_clocks_has_23_hours():
    earnings = Earnings()
    for hour in range(0, 24 * 3, 1):
        earnings.signed(at(2027, 3, 27) + 3600 * hour, "a", MANY, 1)
    days = earnings.credits(at(2027, 3, 29, 12), BERLIN).days
    assert days[-3:] == [credits_of(hours * MANY) for hours in (24, 23, 24)]


def test_a_zone_with_a_quarter_of_an_hour():
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    earnings = Earnings()
    earnings.signed(at(2027, 1, 20, zone=kathmandu) - 1, "a", MANY, 1)
    earnings.signed(at(2027, 1, 20, zone=kathmandu), "a", 5 * MANY, 1)
    assert earnings.credits(at(2027, 1, 20, 6, zone=kathmandu), kathmandu).days[-2:] == [
        credits_of(MANY),
        credits_of(5 * MANY),
    ]


def test_pending_becomes_confirmed_or_nothing():
    earnings = Earnings()
    for _ in range(3):
        earnings.signed(at(2027, 1, 20, 5), "a", MANY, 64)
    earnings.confirmed("a", MANY)
    earnings.refused(at(2027, 1, 20, 5), "a", MANY)
    credits = earnings.credits(at(2027, 1, 20, 6), BERLIN)
    assert (credits.confirmed, credits.pending, credits.today) == (
        credits_of(MANY),
        credits_of(MANY),
        credits_of(2 * MANY),
    )
    assert earnings.done() == DoneNow(jobs=1, rounds=3, samples=192, flops=3 * MANY)


def test_the_last_jobs_with_what_each_has_brought():
    earnings = Earnings()
    for number in range(12):
        earnings.signed(1000 + number, f"job {number}", MANY, 1)
    earnings.signed(2000, "job 5", MANY, 1)
    earnings.signed(2001, "job 5", MANY, 1)
    earnings.confirmed("job 5", MANY)
    earnings.refused(2001, "job 5", MANY)
    jobs = earnings.credits(3000, UTC).jobs
    assert [one.job for one in jobs] == ["job 5", *(f"job {number}" for number in (11, 10, 9, 8, 7, 6, 4, 3, 2))]
    assert (jobs[0].at, jobs[0].rounds, jobs[0].earned, jobs[0].pending) == (
        2001,
        3,
        credits_of(2 * MANY),
        credits_of(MANY),
    )


def test_a_month_of_many_gpus_does_not_overflow():
    earnings = Earnings()
    for _ in range(4):
        earnings.signed(at(2027, 1, 20, 5), "a", 2**63 - 1, 2**63 - 1)
    assert earnings.done().flops == 4 * (2**63 - 1)
    assert earnings.credits(at(2027, 1, 20, 6), BERLIN).pending == pytest.approx(credits_of(2**65))


@given(st.lists(st.tuples(st.integers(0, 60 * DAY), st.sampled_from("kcr")), max_size=40), st.integers(0, 29 * DAY))
def test_sums_are_those_of_the_receipts(receipts, later):
    """Each receipt stays (k), is confirmed (c) or refused (r)."""
    earnings, begin = Earnings(), at(2027, 1, 1, zone=UTC)
    for age, end in receipts:
        earnings.signed(begin + age, "a", MANY, 1)
        if end == "c":
            earnings.confirmed("a", MANY)
        elif end == "r":
            earnings.refused(begin + age, "a", MANY)
    today = 45 + later // DAY
    credits = earnings.credits(begin + today * DAY + 5, UTC)
    counted = [age // DAY for age, end in receipts if end != "r"]
    assert credits.days == [credits_of(MANY * counted.count(day)) for day in range(today - 29, today + 1)]
    assert credits.confirmed + credits.pending == pytest.approx(credits_of(MANY * len(counted)))
