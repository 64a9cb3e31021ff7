"""Who is believed, and what it costs to be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import Refused
from axonp2p.table.records import Report
from tests.fakes import NOW, key_of
from tracker.probing.reports import (
    ACCUSED_FOR_S,
    FIRST_WEIGHT,
    HALF_LIFE_S,
    KNOWN_FOR_S,
    MOST_ACCUSERS,
    Hearing,
    Reports,
    check_report_time,
)

ADA, BEN = (key_of(name).peer_id for name in ("ada", "ben"))
PROBE, WAIT, KNOWN = Hearing.PROBE, Hearing.WAIT, Hearing.KNOWN


def wrong(reports: Reports, reporter: str, source: str, times: int, now: float = 0.0) -> None:
    """Each time about another peer, so that nothing but the weight stands in the way."""
    for number in range(times):
        reports.hear(f"victim of {reporter} {number} at {now}", reporter, source, now)
        reports.judge(f"victim of {reporter} {number} at {now}", answers=True, now=now)


def test_one_accuser_whom_nothing_speaks_against_is_enough():
    assert Reports().hear(ADA, "client", "192.0.2.1", 0.0) is PROBE


def test_a_false_accuser_is_not_believed_alone_but_with_others():
    reports = Reports()
    wrong(reports, "liar", "192.0.2.1", 1)
    assert reports.hear(ADA, "liar", "192.0.2.1", 1.0) is WAIT
    assert reports.hear(ADA, "honest", "198.51.100.7", 2.0) is PROBE


def test_a_new_key_does_not_wash_an_address_clean():
    reports = Reports()
    wrong(reports, "liar", "192.0.2.1", 1)
    assert reports.hear(ADA, "fresh key", "192.0.2.1", 1.0) is WAIT


def test_a_new_address_does_not_wash_a_key_clean():
    reports = Reports()
    wrong(reports, "liar", "192.0.2.1", 1)
    assert reports.hear(ADA, "liar", "198.51.100.7", 1.0) is WAIT


def test_many_keys_at_one_address_are_one_voice():
    reports = Reports()
    wrong(reports, "liar", "192.0.2.1", 2)
    assert {reports.hear(ADA, f"key {number}", "192.0.2.1", 1.0) for number in range(3 * MOST_ACCUSERS)} == {WAIT}


def test_who_was_right_outweighs_one_mistake():
    reports = Reports()
    for number in range(3):
        reports.hear(f"dead{number}", "client", "192.0.2.1", 0.0)
        reports.judge(f"dead{number}", answers=False, now=0.0)
    assert reports.weight("client", 0.0) > 0.7
    wrong(reports, "client", "192.0.2.1", 1)
    assert reports.weight("client", 0.0) < FIRST_WEIGHT


def test_time_forgives():
    reports = Reports()
    wrong(reports, "liar", "192.0.2.1", 1)
    assert reports.hear(ADA, "liar", "192.0.2.1", 4 * HALF_LIFE_S) is PROBE


def test_a_verdict_stands_for_a_while():
    reports = Reports()
    assert reports.hear(ADA, "one", "192.0.2.1", 0.0) is PROBE
    assert reports.hear(ADA, "two", "192.0.2.2", 0.1) is KNOWN  # it is being called
    reports.judge(ADA, answers=False, now=1.0)
    assert reports.hear(ADA, "two", "192.0.2.2", KNOWN_FOR_S) is KNOWN
    assert reports.hear(ADA, "two", "192.0.2.2", KNOWN_FOR_S + 1.1) is PROBE


def test_without_a_verdict_nobody_gains_or_loses():
    reports = Reports()
    reports.hear(ADA, "one", "192.0.2.1", 0.0)
    reports.drop(ADA)
    assert reports.weight("one", 0.0) == FIRST_WEIGHT
    assert reports.hear(ADA, "one", "192.0.2.1", 0.1) is PROBE


def test_accusations_do_not_wait_for_ever_for_others():
    reports = Reports()
    wrong(reports, "liar", "192.0.2.1", 1)
    wrong(reports, "other", "192.0.2.2", 1)
    assert reports.hear(ADA, "liar", "192.0.2.1", 1.0) is WAIT
    assert reports.hear(ADA, "other", "192.0.2.2", ACCUSED_FOR_S + 2.0) is WAIT


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9), st.booleans(), st.floats(0, 7200)), max_size=60))
def test_weights_stay_weights_and_memory_stays_bounded(told: list[tuple[int, int, bool, float]]):
    reports = Reports(most=8)
    now = 0.0
    for peer, who, answers, later in told:
        now += later
        if reports.hear(f"peer{peer}", f"key{who}", f"192.0.2.{who}", now) is PROBE:
            reports.judge(f"peer{peer}", answers=answers, now=now)
        assert 0 < reports.weight(f"key{who}", now) < 1
    assert max(len(reports._weights), len(reports._accused), len(reports._judged)) <= 8


@pytest.mark.parametrize(("off", "words"), [(-31, "ago"), (31, "in the future")])
def test_an_old_report_is_refused(off: int, words: str):
    with pytest.raises(Refused, match=words):
        check_report_time(Report(peer=ADA, time=int(NOW) + off), NOW)
    check_report_time(Report(peer=ADA, time=int(NOW) + off // 31 * 30), NOW)
