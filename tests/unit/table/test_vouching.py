"""Operators' lists of the trackers that they vouch for, and what a peer or a client makes of them."""

from __future__ import annotations

import json
import random

import msgspec
import pytest

from axonp2p.errors import BadSignature, MalformedMessage, StaleRow
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.table.tracker_lines import TrackerLines
from axonp2p.table.tracker_standing import TrackerStanding
from axonp2p.table.vouching import VOUCHED_FOR_S, open_vouching, sign_vouching
from axonp2p.wire.envelope import open_signed, sign
from tests.fakes import NOW, ManualClock, key_of

A, B, C = (f"https://10.{number}.0.1:7070" for number in (1, 2, 3))
OPERATOR, FRIEND, STRANGER = key_of("operator"), key_of("friend"), key_of("stranger")


def of_operator(*trackers, now=NOW):
    return sign_vouching(OPERATOR, dict(trackers), now)


def told(*trackers) -> TrackerHealth:
    """One whose settings name A, which vouches for these."""
    health = TrackerHealth([A])
    health.hear_vouching(A, OPERATOR.peer_id, of_operator(*trackers), NOW)
    return health


def test_a_list_holds_for_its_voucher_and_for_a_week():
    signed = of_operator((FRIEND.peer_id, B))
    assert [one.address for one in open_vouching(signed, OPERATOR.peer_id, NOW).trackers] == [B]
    with pytest.raises(BadSignature):
        open_vouching(signed, STRANGER.peer_id, NOW)
    with pytest.raises(StaleRow):
        open_vouching(signed, OPERATOR.peer_id, NOW + VOUCHED_FOR_S)
    with pytest.raises(MalformedMessage):
        open_vouching(signed, OPERATOR.peer_id, NOW - 60)
    forever = msgspec.structs.replace(open_vouching(signed, OPERATOR.peer_id, NOW), expires=2**53)
    with pytest.raises(MalformedMessage):
        open_vouching(sign(OPERATOR, forever), OPERATOR.peer_id, NOW)
    others = msgspec.structs.replace(open_vouching(signed, OPERATOR.peer_id, NOW), tracker=FRIEND.peer_id)
    with pytest.raises(BadSignature):
        open_vouching(sign(OPERATOR, others), OPERATOR.peer_id, NOW)
    forged = sign(STRANGER, open_vouching(signed, OPERATOR.peer_id, NOW))
    with pytest.raises(BadSignature):
        open_vouching(forged, OPERATOR.peer_id, NOW)


def test_those_that_a_configured_tracker_vouches_for_are_trusted_as_it_is():
    health = told((FRIEND.peer_id, B))
    assert health.standing(B) is TrackerStanding.VOUCHED
    assert health.trusted(NOW) == {OPERATOR.peer_id, FRIEND.peer_id}
    assert not health.is_trusted(FRIEND.peer_id, NOW + VOUCHED_FOR_S + 1)


def test_a_tracker_that_introduced_itself_is_trusted_with_nothing_and_vouches_for_nobody():
    health = told()
    health.learn(B, NOW, STRANGER.peer_id)
    health.answered(B, NOW, tracker=STRANGER.peer_id)
    assert health.hear_vouching(B, STRANGER.peer_id, sign_vouching(STRANGER, {FRIEND.peer_id: C}, NOW), NOW) is False
    assert health.trusted(NOW) == {OPERATOR.peer_id}
    assert health.addresses == [A, B]
    # It claims to be the configured one, which it cannot prove: that one stays what it is, and so does it.
    health.answered(B, NOW, tracker=OPERATOR.peer_id)
    assert health.addresses == [A, B]
    assert health.is_learnt(B)


def test_a_configured_tracker_cannot_pass_on_anothers_list_as_its_own():
    health = TrackerHealth([A])
    health.hear_vouching(A, OPERATOR.peer_id, sign_vouching(STRANGER, {FRIEND.peer_id: B}, NOW), NOW)
    assert health.trusted(NOW) == {OPERATOR.peer_id}


def test_the_newest_list_counts_and_who_is_struck_out_is_forgotten():
    health = told((FRIEND.peer_id, B))
    assert health.hear_vouching(A, OPERATOR.peer_id, of_operator(now=NOW + 5), NOW + 5) is True
    assert health.addresses == [A]
    assert health.hear_vouching(A, OPERATOR.peer_id, of_operator((FRIEND.peer_id, B)), NOW + 6) is False
    assert not health.is_trusted(FRIEND.peer_id, NOW + 6)


def test_a_learnt_tracker_that_is_vouched_for_later_rises():
    health = TrackerHealth([A])
    health.learn(B, NOW, FRIEND.peer_id)
    health.hear_vouching(A, OPERATOR.peer_id, of_operator((FRIEND.peer_id, B)), NOW)
    assert (health.addresses, health.is_learnt(B)) == ([A, B], False)


def test_lists_outlive_a_restart_as_long_as_the_voucher_stays_configured():
    kept = json.loads(json.dumps(told((FRIEND.peer_id, B)).as_plain()))
    again = TrackerHealth([A])
    again.restore(kept, NOW + 60)
    assert again.trusted(NOW + 60) == {OPERATOR.peer_id, FRIEND.peer_id}
    without = TrackerHealth([C])
    without.restore(kept, NOW + 60)
    assert (without.addresses, without.trusted(NOW + 60)) == ([C], frozenset())
    late = TrackerHealth([A])
    late.restore(kept, NOW + VOUCHED_FOR_S + 60)
    assert late.trusted(NOW + VOUCHED_FOR_S + 60) == {OPERATOR.peer_id}


def test_who_vouches_may_be_one_of_a_home_that_somebody_changed():
    plain = json.loads(json.dumps(told((FRIEND.peer_id, B)).as_plain()))
    forged = sign_vouching(STRANGER, {FRIEND.peer_id: B}, NOW)
    plain["vouchings"] = msgspec.to_builtins([msgspec.structs.replace(forged, signer=OPERATOR.peer_id)])
    again = TrackerHealth([A])
    again.restore(plain, NOW)
    assert again.trusted(NOW) == {OPERATOR.peer_id}


def test_a_list_names_sixteen_at_the_most():
    many = {key_of(str(number)).peer_id: f"https://10.{number}.0.1:7070" for number in range(40)}
    signed = sign_vouching(OPERATOR, many, NOW)
    assert len(open_signed(signed, type(open_vouching(signed, OPERATOR.peer_id, NOW))).trackers) == 16


async def test_what_is_more_than_finding_peers_is_asked_of_trusted_trackers():
    def asked(*configured: str) -> list[str]:
        lines = TrackerLines(TrackerHealth(configured), ManualClock(), random.Random(1))
        lines.learn([B])
        return [str(line.address) for line in lines.trusted()]

    assert asked(A, C) in ([A, C], [C, A])
    assert asked() == [B]  # whoever names none has nobody else: peers decide what its tokens are worth


def test_a_learnt_tracker_does_not_take_the_id_of_one_that_is_trusted_or_answers():
    health = told((FRIEND.peer_id, B))
    health.learn(C, NOW)
    for wanted in (OPERATOR, FRIEND):
        assert not health.hear_vouching(C, wanted.peer_id, sign_vouching(wanted, {STRANGER.peer_id: C}, NOW), NOW)
        health.answered(C, NOW, tracker=wanted.peer_id)
        assert health.state(C).tracker == ""
    health.learn(learnt := "https://10.4.0.1:7070", NOW)
    health.answered(learnt, NOW, tracker=STRANGER.peer_id)
    health.answered(C, NOW, tracker=STRANGER.peer_id)
    assert (health.state(learnt).tracker, health.state(C).tracker) == (STRANGER.peer_id, "")
    assert [health.state(one).tracker for one in (A, B)] == [OPERATOR.peer_id, FRIEND.peer_id]


def test_what_was_trusted_in_an_earlier_run_is_trusted_by_the_settings_of_this_one_alone():
    health = told()
    health.learn(B, NOW, STRANGER.peer_id)
    kept = json.loads(json.dumps(health.as_plain()))
    now_named, struck_out = TrackerHealth([B]), TrackerHealth([C])
    now_named.restore(kept, NOW)
    struck_out.restore(kept, NOW)
    assert now_named.standing(B) is TrackerStanding.CONFIGURED
    assert now_named.trusted(NOW) == {STRANGER.peer_id}
    assert struck_out.trusted(NOW) == frozenset()
    assert [struck_out.standing(one) for one in struck_out.addresses] == [
        TrackerStanding.CONFIGURED,
        TrackerStanding.LEARNT,
    ]
