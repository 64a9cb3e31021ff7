"""A tracker's answers and the daemon's pace: patience may be asked for, haste may not."""

from __future__ import annotations

import msgpack
import pytest

from axonp2p.errors import MalformedMessage
from axonp2p.table.records import LEAST_AGAIN_S, LEAST_PING_S, MOST_AGAIN_S, Announced
from axonp2p.wire.codec import decode_as, encode
from peer_daemon.announcing.announce_rota import (
    CHANGE_EVERY_S,
    CHANGES_AT_ONCE,
    EVERY_S,
    ChangeLimit,
    again_in,
    ping_in,
)
from tests.fakes import NOW, key_of

TRACKER = key_of("tracker").peer_id


def answer(**changes):
    usual = {"tracker": TRACKER, "again_in": 300.0, "seen_from": "192.0.2.7", "time": NOW}
    return Announced(**(usual | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"again_in": 1e-9},
        {"again_in": 59.0},
        {"again_in": 3600.0},
        {"again_in": float("nan")},
        {"ping_in": 1e-9},
        {"ping_in": 0.0},
        {"ping_in": float("inf")},
        {"seen_from": "x" * 65},
    ],
)
def test_an_answer_that_asks_for_haste_is_none(changes):
    with pytest.raises(MalformedMessage):
        decode_as(encode(answer(**changes)), Announced, 1024)


def test_bounds_hold_whatever_the_message_was():
    assert again_in(answer(again_in=1e-9), trusted=True) == LEAST_AGAIN_S
    assert again_in(answer(again_in=1e9), trusted=True) == MOST_AGAIN_S
    assert ping_in(answer(ping_in=1e-9), trusted=True) == LEAST_PING_S
    assert ping_in(answer(), trusted=True) == 0
    assert msgpack.unpackb(encode(answer()))["ping_in"] is None


def test_a_learnt_tracker_may_only_slow_down():
    assert again_in(answer(again_in=60.0), trusted=False) == EVERY_S
    assert again_in(answer(again_in=900.0), trusted=False) == 900
    assert ping_in(answer(ping_in=4.0), trusted=False) == 0


def test_changes_that_others_bring_about_are_announced_so_often():
    limit = ChangeLimit()
    assert [limit.take(NOW) for _ in range(CHANGES_AT_ONCE + 3)] == [True] * CHANGES_AT_ONCE + [False] * 3
    assert limit.wait == pytest.approx(CHANGE_EVERY_S)
    assert limit.take(NOW - 3600) is False  # the clock was put back
    assert limit.take(NOW - 3600 + CHANGE_EVERY_S + 1e-3) is True
    assert sum(limit.take(NOW + second / 10) for second in range(36_000)) <= CHANGES_AT_ONCE + 3600 / CHANGE_EVERY_S
