"""What a worker may say: small at first, more for lines that take more, nothing for who is out of reach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage
from axonp2p.sandbox.messages import MayTell
from axonp2p.wire.frame import FRAME_COST
from peer_daemon.execution.worker_credit import WorkerCredit
from peer_daemon.links.credit import FIRST_BYTES, MOST_BYTES, FlowCredit


def test_the_first_credit_is_granted_once_and_made_up_when_a_line_is_replaced():
    credit = FlowCredit()
    assert credit.first() == FIRST_BYTES
    assert credit.first() == 0
    credit.said(1000)
    assert credit.first() == 1000


def test_what_the_line_took_may_be_said_again_in_large_portions():
    credit = FlowCredit()
    credit.first()
    for _ in range(3):
        credit.said(FIRST_BYTES // 4)
    assert credit.went(FIRST_BYTES // 4) == 0
    assert credit.went(FIRST_BYTES // 4) == FIRST_BYTES // 2


def test_one_message_may_pass_the_credit_and_a_second_may_not():
    credit = FlowCredit()
    credit.first()
    credit.said(FIRST_BYTES + 5)
    with pytest.raises(MalformedMessage):
        credit.said(1)
    with pytest.raises(MalformedMessage):
        credit.dropped(1)


def test_a_line_that_takes_all_there_is_gets_a_larger_window_up_to_a_limit():
    credit, left = FlowCredit(), 0
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
    credit = FlowCredit()
    left = credit.first()
    for _ in range(100):
        while left > 0:
            credit.said(FIRST_BYTES // 8)
            left -= FIRST_BYTES // 8
        left += credit.went(FIRST_BYTES // 8)
    assert left <= FIRST_BYTES


def test_who_is_out_of_reach_gets_no_more():
    credit = FlowCredit()
    left = credit.first()
    credit.dropped(left)
    with pytest.raises(MalformedMessage):
        credit.dropped(1)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 300_000)), max_size=200))
def test_no_more_lies_here_than_the_largest_window_and_one_message(steps: list[tuple[bool, int]]):
    credit, waiting = FlowCredit(), []
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
