from __future__ import annotations

import pytest
import torch

from axonp2p.errors import PeerMisbehaved
from axonp2p.tensors.coding import EXACT
from axonp2p.tensors.encoding import encode
from axonp2p.training.exchange.reorder_buffer import ReorderBuffer
from axonp2p.training.messages import LEAST_PART, SlicePart
from tests.unit.training.exchange.meeting import terms

VALUES = 1000
"""So that two exchanges are 14096 bytes, in 16 parts."""


def part(round, attempt=0, exchange=0):
    return SlicePart(
        round=round, attempt=attempt, exchange=exchange, phase="gather", slice=0, offset=0, samples=1, left_out=[]
    )


def at(round, attempt=0, exchange=0, members=(0, 1, 2)):
    return terms(0, members, VALUES, round=round, attempt=attempt, exchange=exchange)


def payloads(parts):
    return [kept.payload for kept in parts]


def test_parts_wait_for_their_exchange():
    early = ReorderBuffer(VALUES)
    early.keep(1, part(5), b"first")
    early.keep(2, part(5), b"second")
    early.keep(1, part(5, exchange=1), b"of the next")
    early.keep(1, part(5), b"third")
    assert [(kept.sender, kept.payload) for kept in early.take(at(5))] == [
        (1, b"first"),
        (1, b"third"),
        (2, b"second"),
    ]
    assert early.take(at(5)) == []
    assert payloads(early.take(at(5, exchange=1))) == [b"of the next"]


def test_parts_of_exchanges_that_are_over_are_forgotten_and_later_ones_kept():
    early = ReorderBuffer(VALUES)
    early.keep(1, part(5, exchange=0), b"old")
    early.keep(2, part(6), b"later")
    assert early.take(at(5, exchange=1)) == []
    assert early.take(at(5, exchange=0)) == []
    assert payloads(early.take(at(6))) == [b"later"]


def test_a_sender_that_began_another_attempt_has_given_up_what_it_said_before():
    early = ReorderBuffer(VALUES)
    early.keep(1, part(5, attempt=0), bytes(13000))
    early.keep(1, part(5, attempt=1), b"anew")
    early.keep(1, part(5, attempt=0), b"late and ignored")
    early.keep(1, part(5, attempt=1), bytes(12000))
    assert payloads(early.take(at(5, attempt=1))) == [b"anew", bytes(12000)]


def test_who_has_left_is_not_heard():
    early = ReorderBuffer(VALUES)
    early.keep(1, part(5), b"gone")
    assert early.take(at(5, members=[0, 2])) == []


def test_nobody_may_fill_the_memory():
    early = ReorderBuffer(VALUES)
    early.keep(1, part(5), bytes(6000))
    early.keep(1, part(5, exchange=1), bytes(7500))
    with pytest.raises(PeerMisbehaved, match="rank 1 sent more than 2 exchanges take"):
        early.keep(1, part(5, exchange=2), b"123")
    early.keep(2, part(5), bytes(6000))
    assert len(early.take(at(5))) == 2
    early.keep(1, part(5, exchange=2), bytes(6000))


def test_many_small_parts_are_counted_too():
    early = ReorderBuffer(VALUES)
    for _ in range(16):
        early.keep(1, part(5), b"")
    with pytest.raises(PeerMisbehaved):
        early.keep(1, part(5), b"")


def test_two_exchanges_in_the_smallest_parts_are_not_too_much():
    values = 40 * LEAST_PART
    early = ReorderBuffer(values)
    for exchange in (0, 1):
        for _ in range(40 + 4):
            early.keep(1, part(5, exchange=exchange), encode(torch.zeros(LEAST_PART), EXACT)[0])
    assert len(early.take(at(5))) == 44


def test_what_a_part_costs_does_not_grow_with_what_is_kept():
    early = ReorderBuffer(4096 * LEAST_PART)
    for round in range(4096):
        early.keep(1, part(round), b"")
    kept = early._kept[1]
    walked = Walked(kept.rounds)
    kept.rounds = walked
    early.keep(1, part(4096), b"")
    early.keep(1, part(4096, attempt=1), b"")
    assert walked.times == 0


class Walked(dict):
    """Counts who goes through all of it."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()

    items = values = keys = __iter__
