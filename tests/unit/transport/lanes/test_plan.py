"""By which way bulk goes, and for how much of a part a reader waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.transport.lanes.plan import (
    FIRST_PAUSE_S,
    LENGTH,
    LONGEST_PAUSE_S,
    LOW_WATER,
    RECORD_BYTES,
    RECORD_WIRE_BYTES,
    WORTH_BYTES,
    BulkWay,
    SendPlan,
    part_length,
    worth_waiting,
)
from axonp2p.wire.frame import PAYLOAD_LIMIT


def test_a_lane_is_opened_once_enough_waits_and_used_once_it_is_there():
    plan = SendPlan()
    assert not plan.opens(WORTH_BYTES - 1, 0.0)
    assert plan.opens(WORTH_BYTES, 0.0)
    assert not plan.opens(WORTH_BYTES, 0.0)  # it is being opened
    assert plan.way is BulkWay.OPENING
    assert plan.opened()
    plan.begun()
    assert plan.way is BulkWay.LANE
    assert not plan.opened()


def test_after_an_idle_lane_the_next_comes_at_once():
    plan = on_a_lane(SendPlan(), 0.0)
    assert plan.idle()
    assert plan.way is BulkWay.LEAVING
    assert not plan.opens(WORTH_BYTES, 1.0)
    assert plan.ended(1.0)
    assert plan.opens(WORTH_BYTES, 1.0)


def test_after_a_broken_lane_the_other_side_is_asked_and_the_next_comes_later_each_time():
    plan, now, pause = SendPlan(), 0.0, FIRST_PAUSE_S
    for _ in range(12):
        assert on_a_lane(plan, now).failed(now)
        assert not plan.failed(now)  # only once is the other side asked
        assert plan.ended(now)
        assert not plan.opens(WORTH_BYTES, now + pause - 0.1)
        now += pause
        pause = min(2 * pause, LONGEST_PAUSE_S)


def test_a_lane_that_could_not_be_opened_leaves_everything_on_the_session():
    plan = SendPlan()
    assert plan.opens(WORTH_BYTES, 0.0)
    assert not plan.failed(0.0)
    assert plan.way is BulkWay.SESSION
    assert not plan.opens(WORTH_BYTES, FIRST_PAUSE_S - 0.1)
    assert plan.opens(WORTH_BYTES, FIRST_PAUSE_S)


def test_the_other_side_may_end_a_lane_by_itself_but_none_that_is_not_there():
    plan = SendPlan()
    assert not plan.ended(0.0)
    assert on_a_lane(plan, 0.0).ended(0.0)
    assert not plan.idle()
    assert not plan.ended(0.0)


def on_a_lane(plan: SendPlan, now: float) -> SendPlan:
    assert plan.opens(WORTH_BYTES, now)
    assert plan.opened()
    plan.begun()
    return plan


def test_the_length_of_a_part_is_bounded_before_it_gets_room():
    assert part_length(LENGTH.pack(1)) == 1
    assert part_length(LENGTH.pack(PAYLOAD_LIMIT)) == PAYLOAD_LIMIT
    with pytest.raises(MalformedMessage):
        part_length(LENGTH.pack(0))
    with pytest.raises(MessageTooLarge):
        part_length(LENGTH.pack(PAYLOAD_LIMIT + 1))


@given(st.integers(1, PAYLOAD_LIMIT), st.integers(0, RECORD_BYTES), st.integers(4096, 2**23))
def test_nobody_waits_for_more_than_comes_and_every_wait_brings_something(rest, decrypted, buffer):
    decrypted = min(decrypted, rest)
    least, portion = worth_waiting(rest, decrypted, buffer)
    # On the wire the rest is at least as long as it is: more than that may never come.
    assert 0 <= least <= max(rest - decrypted, 0)
    assert least <= LOW_WATER
    assert least <= max(buffer // 4, RECORD_WIRE_BYTES)
    assert 0 < portion <= rest
    if portion < rest:
        assert portion - decrypted <= least * RECORD_BYTES // RECORD_WIRE_BYTES
