"""What a worker may say: small at first, more for lines that take more, nothing for who is out of reach."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage
from axonp2p.sandbox.messages import MayTell
from axonp2p.wire.frame import FRAME_COST
from peer_daemon.execution.worker_credit import WorkerCredit
from peer_daemon.links.credit import FIRST_BYTES, GROWN_BYTES, MOST_BYTES, FlowCredit, WindowGrowth


def test_the_first_credit_is_granted_once_and_made_up_when_a_line_is_replaced():
    credit = FlowCredit(WindowGrowth())
    assert credit.first() == FIRST_BYTES
    assert credit.first() == 0
    credit.said(1000)
    assert credit.first() == 1000


def test_what_the_line_took_may_be_said_again_in_large_portions():
    credit = FlowCredit(WindowGrowth())
    credit.first()
    for _ in range(3):
        credit.said(FIRST_BYTES // 4)
    assert credit.went(FIRST_BYTES // 4) == 0
    assert credit.went(FIRST_BYTES // 4) == FIRST_BYTES // 2


def test_one_message_may_pass_the_credit_and_a_second_may_not():
    credit = FlowCredit(WindowGrowth())
    credit.first()
    credit.said(FIRST_BYTES + 5)
    with pytest.raises(MalformedMessage):
        credit.said(1)
    with pytest.raises(MalformedMessage):
        credit.dropped(1)


def test_a_line_that_takes_all_there_is_gets_a_larger_window_up_to_a_limit():
    credit, left = FlowCredit(WindowGrowth()), 0
    left += credit.first()
    granted = []
    for _ in range(20):
        credit.said(left)
        granted.append(credit.went(left))
        left = granted[-1]
    assert granted[:3] == [2 * FIRST_BYTES, 4 * FIRST_BYTES, 8 * FIRST_BYTES]
    assert 8 * FIRST_BYTES == MOST_BYTES
    assert granted[-1] == MOST_BYTES


def test_a_line_that_cannot_take_it_keeps_its_window():
    credit = FlowCredit(WindowGrowth())
    left = credit.first()
    for _ in range(100):
        while left > 0:
            credit.said(FIRST_BYTES // 8)
            left -= FIRST_BYTES // 8
        left += credit.went(FIRST_BYTES // 8)
    assert left <= FIRST_BYTES


def test_who_is_out_of_reach_gets_no_more():
    credit = FlowCredit(WindowGrowth())
    left = credit.first()
    credit.dropped(left)
    with pytest.raises(MalformedMessage):
        credit.dropped(1)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 300_000)), max_size=200))
def test_no_more_lies_here_than_the_largest_window_and_one_message(steps: list[tuple[bool, int]]):
    credit, waiting = FlowCredit(WindowGrowth()), []
    left = credit.first()
    for says, size in steps:
        if says and left > 0:
            credit.said(size)
            left -= size
            waiting.append(size)
        elif waiting:
            left += credit.went(waiting.pop(0))
    assert sum(waiting) + max(0, left) <= MOST_BYTES + 300_000
    for size in waiting:
        left += credit.went(size)
    assert left > 0, "once all has gone there is credit again"


def taken_at_once(credit: FlowCredit, left: int) -> int:
    """The credit that a worker has in the end whose line has often taken all that it could say."""
    for _ in range(20):
        credit.said(left)
        left = credit.went(left)
    return left


def test_the_windows_of_sixteen_receivers_grow_to_the_most():
    growth = WindowGrowth()
    credits = [FlowCredit(growth) for _ in range(16)]
    assert [taken_at_once(credit, credit.first()) for credit in credits] == [MOST_BYTES] * 16


def test_a_window_beyond_what_a_lease_may_have_stays_small_and_its_line_is_still_used():
    growth = WindowGrowth()
    for _ in range(16):
        credit = FlowCredit(growth)
        taken_at_once(credit, credit.first())
    last = FlowCredit(growth)
    assert taken_at_once(last, last.first()) == FIRST_BYTES


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=100))
def test_the_windows_of_a_lease_grow_no_further_together_than_its_bound(steps: list[tuple[int, bool]]):
    growth = WindowGrowth(MOST_BYTES)
    credits = [FlowCredit(growth) for _ in range(5)]
    left, waiting = [credit.first() for credit in credits], [0] * 5
    for at, says in steps:
        if says and left[at] > 0:
            credits[at].said(left[at])
            waiting[at], left[at] = waiting[at] + left[at], 0
        elif waiting[at]:
            went, waiting[at] = waiting[at], 0
            left[at] += credits[at].went(went)
        assert sum(waiting) + sum(left) <= MOST_BYTES + 5 * FIRST_BYTES
    assert all(one or other for one, other in zip(left, waiting, strict=True)), "nobody is left without any credit"


async def test_all_receivers_of_one_worker_share_what_their_windows_may_grow_by():
    credit, left = WorkerCredit(), Counter[int | None]()

    async def tell(granted: MayTell) -> None:
        left[granted.rank] += granted.bytes

    credit.begin(range(63))
    await credit.tell(tell)
    for _ in range(4):  # each line takes at once all that the worker may say
        for rank, may in dict(left).items():
            credit.said(rank, may - FRAME_COST)
            left[rank] -= may
            credit.went(rank, may - FRAME_COST)
        await credit.tell(tell)
    assert left.total() == GROWN_BYTES + 63 * FIRST_BYTES


@pytest.mark.parametrize("how", ["said", "dropped"])
def test_a_message_of_a_byte_costs_a_fixed_part_beside_it(how: str):
    credit = WorkerCredit()
    credit.begin([7])
    for _ in range(-(-FIRST_BYTES // (FRAME_COST + 1))):
        getattr(credit, how)(7, 1)
    with pytest.raises(MalformedMessage):
        getattr(credit, how)(7, 1)


async def test_the_fixed_part_comes_back_when_the_line_has_taken_the_message():
    credit, left = WorkerCredit(), 0

    async def tell(granted: MayTell) -> None:
        nonlocal left
        left += granted.bytes

    credit.begin([7])
    await credit.tell(tell)
    for _ in range(20):  # an honest worker may say as much again, as often as it goes
        said = 0
        while left > 0:
            credit.said(7, 1)
            left -= 1 + FRAME_COST
            said += 1
        for _ in range(said):
            credit.went(7, 1)
        await credit.tell(tell)
        assert left > 0
