from __future__ import annotations

import pytest

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.early_parts import EarlyParts
from axonp2p.training.messages import SlicePart, StartRound


def part(round, attempt=0):
    return SlicePart(round=round, attempt=attempt, phase="gather", slice=0, offset=0, samples=1)


def order(round, attempt=0, members=(0, 1, 2)):
    return StartRound(round=round, attempt=attempt, state=bytes(32), members=list(members), shards=[0], steps=1)


def test_parts_wait_for_their_round():
    early = EarlyParts(100)
    early.keep(1, part(5), b"first")
    early.keep(2, part(5), b"second")
    early.keep(1, part(5), b"third")
    assert [(kept.sender, kept.payload) for kept in early.take(order(5))] == [
        (1, b"first"),
        (1, b"third"),
        (2, b"second"),
    ]
    assert early.take(order(5)) == []


def test_parts_of_rounds_that_are_over_are_forgotten_and_later_ones_kept():
    early = EarlyParts(100)
    early.keep(1, part(5, attempt=0), b"old")
    early.keep(2, part(5, attempt=2), b"later")
    assert early.take(order(5, attempt=1)) == []
    assert [kept.payload for kept in early.take(order(5, attempt=2))] == [b"later"]


def test_a_sender_that_went_on_has_given_up_what_it_said_before():
    early = EarlyParts(10)
    early.keep(1, part(5, attempt=0), b"0123456789")
    early.keep(1, part(5, attempt=1), b"abcdefghij")
    early.keep(1, part(5, attempt=0), b"late and ignored")
    assert [kept.payload for kept in early.take(order(5, attempt=1))] == [b"abcdefghij"]


def test_who_has_left_is_not_heard():
    early = EarlyParts(10)
    early.keep(1, part(5), b"gone")
    assert early.take(order(5, members=[0, 2])) == []


def test_nobody_may_fill_the_memory():
    early = EarlyParts(10)
    early.keep(1, part(5), b"12345678")
    with pytest.raises(PeerMisbehaved, match="rank 1 sent more than one exchange takes"):
        early.keep(1, part(5), b"123")
    early.keep(2, part(5), b"1234567890")
