"""Which jobs a host takes, and which it forgets."""

from __future__ import annotations

import dataclasses

import pytest

from axonp2p.errors import Busy, LimitReached, Refused, SettingsError, TooOften
from axonp2p.hosting.admission import ARRIVES_WITHIN_S, Applicant, Held, admit, why_forgotten
from axonp2p.hosting.limits import DAY_S, HostLimits, limits_of
from tests.fakes import NOW

LIMITS = HostLimits(jobs=3, jobs_of_one=2, disk_bytes=1000, keep_s=14 * DAY_S)


def held(job: str, owner: str = "ada", **changes: object) -> Held:
    usual = Held(owner=owner, job=job, source=f"{owner}'s house", began=NOW, arrived=True)
    return dataclasses.replace(usual, **changes)  # type: ignore[arg-type]


def wish(job: str = "new", owner: str = "ada", size: int = 10, source: str = "") -> Applicant:
    return Applicant(owner, job, source or f"{owner}'s house", size)


def over(job: str, owner: str = "ada", *, since: float = NOW, may_go: bool = True) -> Held:
    return held(job, owner, over_since=since, may_go=may_go)


def test_there_is_room() -> None:
    assert admit(wish(), [], LIMITS) == []
    assert admit(wish(), [held("one"), held("two", "bob")], LIMITS) == []


def test_one_client_gets_no_more_than_its_share() -> None:
    with pytest.raises(TooOften, match="2 jobs of yours"):
        admit(wish(), [held("one"), held("two")], LIMITS)


def test_another_key_at_the_same_address_is_the_same_client() -> None:
    mine = [held("one"), held("two")]
    with pytest.raises(TooOften):
        admit(wish(owner="ada's other key", source="ada's house"), mine, LIMITS)
    assert admit(wish(owner="bob"), mine, LIMITS) == []


def test_a_full_host_says_so() -> None:
    with pytest.raises(Busy, match="no room"):
        admit(wish(), [held("one", "bob"), held("two", "bob"), held("three", "eve")], LIMITS)


def test_what_was_fetched_gives_way_and_the_oldest_first() -> None:
    old, young = over("old", "bob", since=NOW - 50), over("young", "eve", since=NOW - 5)
    assert admit(wish(), [young, old, held("three", "dan")], LIMITS) == [old]


def test_what_nobody_has_fetched_does_not_give_way() -> None:
    with pytest.raises(Busy):
        admit(wish(), [over("one", "bob", may_go=False), held("two", "bob"), held("three", "eve")], LIMITS)


def test_ones_own_old_job_gives_way_before_anybody_elses() -> None:
    mine, theirs = over("mine", since=NOW - 5), over("theirs", "bob", since=NOW - 50)
    assert admit(wish(), [mine, held("other"), theirs], LIMITS) == [mine]


def test_coming_again_is_no_second_job() -> None:
    assert admit(wish("one"), [held("one"), held("two")], LIMITS) == []


def test_too_large_and_not_at_all() -> None:
    with pytest.raises(LimitReached, match="may take at most"):
        admit(wish(size=1001), [], LIMITS)
    with pytest.raises(Refused, match="carries no jobs on"):
        admit(wish(), [], dataclasses.replace(LIMITS, jobs=0))


def test_each_is_forgotten_in_time() -> None:
    arriving = held("one", arrived=False)
    assert not why_forgotten(arriving, LIMITS, NOW + ARRIVES_WITHIN_S)
    assert why_forgotten(arriving, LIMITS, NOW + ARRIVES_WITHIN_S + 1) == "its bundle never came"
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
