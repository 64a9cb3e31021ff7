"""Looking at the logs of several trackers: what one of them answers costs the others nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from axonp2p.errors import MalformedMessage
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger import log_watch
from axonp2p.ledger.log_messages import HEADS_LIMIT, HeadsTold
from axonp2p.ledger.log_watch import look_at_logs
from axonp2p.ledger.tree_head import ForkEvidence, TreeHead, why_exclusive, why_shrunk
from axonp2p.ledger.watched_logs import WatchedLogs
from axonp2p.transport.http.http_caller import HttpCaller
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import key_of

GOOD, BAD = key_of("good tracker"), key_of("bad tracker")


def head(key: PrivateKey, size: int, time: int, root: bytes = b"r" * 32) -> TreeHead:
    return TreeHead(tracker=key.peer_id, log="a" * 32, size=size, root=root, time=time)


def signed(key: PrivateKey, size: int, time: int, root: bytes = b"r" * 32) -> Signed[TreeHead]:
    return sign(key, head(key, size, time, root))


class Caller:
    """Stands for the line to one tracker."""

    def __init__(self, called: str, told: HeadsTold | Exception) -> None:
        self.called, self.told = called, told


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def heads(caller: Caller) -> HeadsTold:
        if isinstance(caller.told, Exception):
            raise caller.told
        return caller.told

    monkeypatch.setattr(log_watch, "heads", heads)


def callers(*those: Caller) -> list[HttpCaller]:
    return cast(Any, list(those))


def test_a_head_of_the_year_285_million_is_no_head() -> None:
    told = HeadsTold(own=signed(BAD, 1, 2**53))
    decode_as(encode(told), HeadsTold, HEADS_LIMIT)
    with pytest.raises(MalformedMessage):
        WatchedLogs().heard(told.own)


@pytest.mark.parametrize("time", [2**36, 253402300800, 2**53, 2**62])
def test_two_heads_at_times_that_no_calendar_has_can_be_told(time: int) -> None:
    assert why_exclusive(head(BAD, 1, time), head(BAD, 1, time, b"x" * 32))
    assert not why_exclusive(head(BAD, 1, time), head(BAD, 2, 0))
    assert why_shrunk(head(BAD, 2, 0), head(BAD, 1, time))
    with pytest.raises((ValueError, OverflowError)):
        datetime.fromtimestamp(2**53, UTC)


async def test_an_answer_that_cannot_be_used_costs_the_look_at_its_tracker_alone() -> None:
    two = [signed(BAD, 1, 2**53, root * 32) for root in (b"x", b"y")]
    poisoned = HeadsTold(own=signed(BAD, 1, 1), seen=two, evidence=[ForkEvidence(first=two[0], second=two[1])])
    watched = WatchedLogs()
    for wrong in (poisoned, HeadsTold(own=two[0]), ValueError("nobody thought of it"), RecursionError()):
        bad, good = await look_at_logs(
            callers(Caller("bad", wrong), Caller("good", HeadsTold(own=signed(GOOD, 3, 5)))), watched
        )
        assert good.head is not None
        assert good.head.size == 3
        assert bad.called == "bad"
    assert [one.tracker for one in watched.convicted] == []
    assert watched.last(GOOD.peer_id)
