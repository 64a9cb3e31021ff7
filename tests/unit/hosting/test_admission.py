"""Which jobs a host takes, and which it forgets."""

from __future__ import annotations

import dataclasses

import pytest

from axonp2p.errors import Busy, LimitReached, Refused, SettingsError, TooOften
from axonp2p.hosting.admission import (
    ARRIVAL_BEGINS_S,
    ARRIVAL_IDLE_S,
    ARRIVAL_STALLED_S,
    DAY_S,
    FAILED_S,
    LEAST_BYTES_S,
    ROUNDLESS_S,
    UNBEGUN_S,
    Applicant,
    HeldJob,
    HostLimits,
    admit,
    limits_of,
    may_go,
    settle,
    why_forgotten,
)
from axonp2p.jobs.lifecycle import JobState
from tests.fakes import NOW

LIMITS = HostLimits(jobs=3, jobs_of_one=2, disk_bytes=1000, keep_s=14 * DAY_S)


def held(job: str, owner: str = "ada", **changes: object) -> HeldJob:
    usual = HeldJob(owner=owner, job=job, source=f"{owner}'s house", began=NOW, arrived=True, stirred=NOW)
    return dataclasses.replace(usual, **changes)  # type: ignore[arg-type]


def wish(job: str = "new", owner: str = "ada", size: int = 10, source: str = "") -> Applicant:
    return Applicant(owner, job, source or f"{owner}'s house", size)


def over(job: str, owner: str = "ada", *, since: float = NOW, fetched: bool = True) -> HeldJob:
    return held(job, owner, over_since=since, fetched=fetched, state=JobState.FINISHED, done=3)


def test_there_is_room() -> None:
    assert admit(wish(), [], LIMITS, NOW) == []
    assert admit(wish(), [held("one"), held("two", "bob")], LIMITS, NOW) == []


def test_one_client_gets_no_more_than_its_share() -> None:
    with pytest.raises(TooOften, match="2 jobs of yours"):
        admit(wish(), [held("one"), held("two")], LIMITS, NOW)


def test_another_key_at_the_same_address_is_the_same_client() -> None:
    mine = [held("one"), held("two")]
    with pytest.raises(TooOften):
        admit(wish(owner="ada's other key", source="ada's house"), mine, LIMITS, NOW)
    assert admit(wish(owner="bob"), mine, LIMITS, NOW) == []


def test_a_full_host_says_so() -> None:
    with pytest.raises(Busy, match="no room"):
        admit(wish(), [held("one", "bob"), held("two", "bob"), held("three", "eve")], LIMITS, NOW)


def test_what_was_fetched_gives_way_and_the_oldest_first() -> None:
    old, young = over("old", "bob", since=NOW - 50), over("young", "eve", since=NOW - 5)
    jobs = [young, old, held("three", "dan")]
    assert admit(wish(), jobs, LIMITS, NOW) == []  # not yet: what comes may never be whole
    assert settle(wish(), jobs, LIMITS, NOW) == [old]


def test_what_nobody_has_fetched_does_not_give_way() -> None:
    with pytest.raises(Busy):
        admit(wish(), [over("one", "bob", fetched=False), held("two", "bob"), held("three", "eve")], LIMITS, NOW)


def test_ones_own_old_job_gives_way_before_anybody_elses() -> None:
    mine, theirs = over("mine", since=NOW - 5), over("theirs", "bob", since=NOW - 50)
    assert settle(wish(), [mine, held("other"), theirs], LIMITS, NOW) == [mine]


def test_coming_again_is_no_second_job() -> None:
    assert admit(wish("one"), [held("one"), held("two")], LIMITS, NOW) == []


def test_too_large_and_not_at_all() -> None:
    with pytest.raises(LimitReached, match="may take at most"):
        admit(wish(size=1001), [], LIMITS, NOW)
    with pytest.raises(Refused, match="carries no jobs on"):
        admit(wish(), [], dataclasses.replace(LIMITS, jobs=0), NOW)


def test_each_is_forgotten_in_time() -> None:
    arriving = held("one", arrived=False)
    assert not why_forgotten(arriving, LIMITS, NOW + ARRIVAL_STALLED_S)
    stalled = why_forgotten(arriving, LIMITS, NOW + ARRIVAL_STALLED_S + 1)
    assert stalled == "nothing of its bundle came for 10 minutes"
    coming = dataclasses.replace(arriving, stirred=NOW + 3000)
    assert not why_forgotten(coming, LIMITS, NOW + 3000 + ARRIVAL_STALLED_S)
    assert not why_forgotten(held("one"), LIMITS, NOW + 14 * DAY_S)
    assert why_forgotten(held("one"), LIMITS, NOW + 14 * DAY_S + 1) == "it ran for 14 days"
    done = held("one", over_since=NOW + 13 * DAY_S)
    assert not why_forgotten(done, LIMITS, NOW + 26 * DAY_S)
    assert why_forgotten(done, LIMITS, NOW + 28 * DAY_S) == "it has been over for 14 days"


def test_limits_that_cannot_be_meant() -> None:
    assert limits_of(0, 2, 4096, 14).jobs == 0
    for wrong in ((-1, 2, 4096, 14), (4, -1, 4096, 14), (4, 2, 0, 14), (4, 2, 4096, 0)):
        with pytest.raises(SettingsError, match="cannot be meant"):
            limits_of(*wrong)


def test_those_that_only_say_that_a_job_will_come_keep_nobody_out() -> None:
    arriving = [held(f"job-{number}", f"key-{number}", arrived=False) for number in range(3)]
    with pytest.raises(Busy):
        admit(wish(), arriving, LIMITS, NOW + ARRIVAL_IDLE_S - 1)
    assert admit(wish(), arriving, LIMITS, NOW + ARRIVAL_IDLE_S) == arriving[:1]
    assert settle(wish(), arriving, LIMITS, NOW) == []
    coming = [dataclasses.replace(one, stirred=NOW + 300, came_bytes=2**20) for one in arriving]
    with pytest.raises(Busy):
        admit(wish(), coming, LIMITS, NOW + 301)


def test_a_job_that_would_find_no_place_once_it_is_here_is_not_begun() -> None:
    with pytest.raises(Busy):
        admit(wish(), [held("one", "bob"), held("two", "bob"), held("three", "eve")], LIMITS, NOW)


def test_failed_jobs_go_first_and_who_trained_is_kept_for_an_hour() -> None:
    fetched = over("fetched", "bob", since=NOW - 9000)
    empty = held("empty", "eve", over_since=NOW - 5, state=JobState.FAILED)
    assert settle(wish(), [fetched, empty, held("three", "dan")], LIMITS, NOW) == [empty]
    trained = dataclasses.replace(empty, done=4, over_since=NOW)
    assert not may_go(trained, NOW + FAILED_S - 1)
    assert may_go(trained, NOW + FAILED_S)
    assert not may_go(dataclasses.replace(trained, state=JobState.PAUSED), NOW + 10 * FAILED_S)
    assert may_go(held("no record", over_since=NOW), NOW)


def test_a_job_that_only_waits_gives_way_and_one_that_trains_does_not() -> None:
    assert not may_go(held("new"), NOW + UNBEGUN_S - 1)
    assert may_go(held("nobody fits"), NOW + UNBEGUN_S)
    trains = held("trains", state=JobState.RUNNING, done=3)
    assert not may_go(trains, NOW + ROUNDLESS_S - 1)
    assert may_go(trains, NOW + ROUNDLESS_S)


def test_a_bundle_that_trickles_gives_way_however_often_its_sender_comes_back() -> None:
    trickles = held("slow", arrived=False, came_bytes=LEAST_BYTES_S * 60)
    later = NOW + ARRIVAL_BEGINS_S + 60
    assert not may_go(dataclasses.replace(trickles, stirred=later), later - 1)
    assert may_go(dataclasses.replace(trickles, stirred=later), later)


def test_copies_are_counted_apart_and_held_to_the_same_limits() -> None:
    jobs = [held("one"), held("two"), held("three", owner="bob")]
    copy = dataclasses.replace(wish(), is_copy=True)
    assert settle(copy, jobs, LIMITS, NOW) == []
    copies = [held("four", is_copy=True, done=3), held("five", is_copy=True, done=3)]
    with pytest.raises(TooOften, match="2 copies of jobs of yours"):
        settle(copy, [*jobs, *copies], LIMITS, NOW)
    assert settle(wish("new", "carol"), [jobs[0], jobs[2], *copies], LIMITS, NOW) == []
    others = [*copies, held("six", owner="bob", is_copy=True, done=3)]
    with pytest.raises(Busy, match="3 copies of jobs, and"):
        settle(dataclasses.replace(copy, owner="carol", source="carol's house"), others, LIMITS, NOW)


def test_a_copy_stays_while_its_host_is_silent_and_goes_when_nobody_needs_it() -> None:
    copy = held("one", is_copy=True, done=3)
    week = NOW + 7 * DAY_S
    assert not may_go(copy, week)
    assert not why_forgotten(copy, LIMITS, week)
    assert why_forgotten(copy, LIMITS, NOW + LIMITS.keep_s + 1)
    assert not why_forgotten(dataclasses.replace(copy, stirred=week), LIMITS, NOW + LIMITS.keep_s + 1)
    assert may_go(dataclasses.replace(copy, fetched=True), NOW)
    assert may_go(dataclasses.replace(copy, state=JobState.CANCELLED), NOW)
    empty = dataclasses.replace(copy, done=0)
    assert (may_go(empty, NOW), may_go(empty, NOW + UNBEGUN_S)) == (False, True)
