"""In a job on cards a member's steps are done again by members with the same kind of card, or by nobody."""

from __future__ import annotations

import pytest

from axonp2p.training.messages import Prepared, StartRound
from axonp2p.training.round_messages import CheckEnded, MemberReady, MemberUnchecked, Tell
from axonp2p.training.spot_checks.questions import ComparableDevices
from axonp2p.training.spot_checks.scheduler import CheckSettings, SpotChecks
from axonp2p.verification.judgement import Outcome
from axonp2p.verification.rates import Trust
from tests.unit.training.conversation import FIRST
from tests.unit.training.conversation import Conversation as RoundsConversation
from tests.unit.training.spot_checks.test_scheduler import (
    BATCH,
    END,
    EVERYBODY,
    FALSE,
    STEPS,
    Conversation,
    everybody,
    report,
)

LARGE, SMALL = "cuda 9.0, 132 processors", "cuda 8.9, 24 processors"


def on(*devices: str, cards: bool = True) -> Conversation:
    """Members that compute on these, in a job that is checked as often as can be."""
    desk = Conversation()
    settings = CheckSettings(1.0, 2**30, lambda _: Trust(), lambda: 0.0, cards=cards)
    desk.checks = SpotChecks(settings, steps=STEPS, batch=BATCH, from_the_start=True)
    desk.checks.cut(1000, STEPS, len(devices))
    for rank, device in enumerate(devices):
        desk.checks.devices.note(rank, device)
    return desk


def all_answers(desk: Conversation, end: list[float] = END) -> dict[int, set[int]]:
    """Who did whose steps again, until nobody is asked any more."""
    found: dict[int, set[int]] = {}
    while asked := desk.asks():
        for rank, order in asked.items():
            found.setdefault(order.of, set()).add(rank)
            desk.answers(rank, order, end=end)
    return found


def test_steps_are_done_again_by_those_with_the_same_kind_of_card():
    desk = on(LARGE, SMALL, LARGE, SMALL, LARGE)
    assert desk.finish(everybody()) == ({}, [])
    by = all_answers(desk)
    assert by.keys() == EVERYBODY
    assert all(others <= ({0, 2, 4} if of in (0, 2, 4) else {1, 3}) - {of} for of, others in by.items())


def test_of_one_that_has_a_card_of_its_own_kind_is_told_that_nobody_checks_it():
    desk = on(LARGE, SMALL, LARGE, LARGE, LARGE)
    _, said = desk.finish(everybody())
    assert said == [MemberUnchecked(1, f"no other peer computes on what it does ({SMALL})")]
    assert all_answers(desk).keys() == EVERYBODY - {1}
    assert desk.finish(everybody(round=1), 1)[1] == []  # told once


def test_nobody_is_accused_by_others_than_its_own_kind():
    desk = on(LARGE, SMALL, LARGE, SMALL, SMALL)
    desk.finish(everybody(of_0=FALSE))
    told, gone = [], {}
    while asked := desk.asks():
        for rank, order in asked.items():
            found = desk.answers(rank, order)
            told += [one for one in found.said if isinstance(one, CheckEnded) and one.of == 0]
            gone |= found.gone
    (ended,) = told
    assert (ended.by, ended.judgement.outcome, gone) == ([2], Outcome.UNDECIDED, {})


def test_where_three_are_of_a_kind_a_false_claim_is_convicted():
    desk = on(LARGE, LARGE, LARGE, LARGE, SMALL)
    desk.finish(everybody())
    all_answers(desk)
    desk.finish(everybody(round=1, of_2=FALSE), 1)
    gone: dict[int, str] = {}
    while asked := desk.asks():
        for rank, order in asked.items():
            gone |= desk.answers(rank, order).gone
    assert list(gone) == [2]


def test_in_a_job_without_cards_a_made_up_device_keeps_nobody_out_of_checks():
    desk = on("cpu", "cuda 99.9", "cpu", "cpu", "cpu", cards=False)
    assert desk.finish(everybody()) == ({}, [])
    assert all_answers(desk).keys() == EVERYBODY


def test_where_all_differ_nothing_is_committed_to():
    devices = ComparableDevices(cards=True)
    for rank, device in enumerate((LARGE, SMALL, "cpu")):
        devices.note(rank, device)
    assert devices.checkable([0, 1, 2]) == []
    devices.note(3, "cpu")
    assert devices.checkable([0, 1, 2, 3]) == [2, 3]
    assert list(devices.newly_alone([0, 1, 2, 3])) == [0, 1]
    assert devices.newly_alone([0]) == {}


def test_a_round_of_members_that_nobody_can_check_has_no_marks():
    desk = on(LARGE, SMALL, LARGE)
    assert desk.checks.cut(1000, STEPS, len(desk.checks.devices.checkable([0, 1]))).every == 0
    reports = {rank: report(marks=[]) for rank in (0, 1)}
    _, said = desk.finish(reports, every=0)
    assert [one.rank for one in said if isinstance(one, MemberUnchecked)] == [0, 1]


@pytest.mark.parametrize(("devices", "marked"), [((LARGE, LARGE), True), ((LARGE, SMALL), False)])
def test_what_members_compute_on_is_heard_when_they_have_built_the_model(devices: tuple[str, str], marked: bool):
    settings = CheckSettings(1.0, 2**30, lambda _: Trust(), lambda: 0.0, cards=True)
    talk = RoundsConversation(2, checks=settings)
    talk.begin()
    told = [Prepared(state=FIRST, parameters=100, values=100, device=device) for device in devices]
    said = talk.hears(*(MemberReady(rank, one, bytes(32)) for rank, one in enumerate(told)))
    starts = [one.message for one in said if isinstance(one, Tell) and isinstance(one.message, StartRound)]
    assert [start.mark_every > 0 for start in starts] == [marked, marked]
