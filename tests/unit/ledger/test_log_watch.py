"""Looking at the logs of several trackers: what one of them answers costs the others nothing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from axonp2p.errors import MalformedMessage, Refused
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
        self.asked = asyncio.Event()
        self.answers_after: asyncio.Event | None = None
        """Until then it keeps whoever asks waiting."""

    async def hear(self) -> None:
        self.asked.set()
        if self.answers_after:
            await self.answers_after.wait()


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def heads(caller: Caller) -> HeadsTold:
        await caller.hear()
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


async def test_all_are_asked_side_by_side() -> None:
    bad, good = Caller("bad", HeadsTold(own=signed(BAD, 1, 1))), Caller("good", HeadsTold(own=signed(GOOD, 3, 5)))
    bad.answers_after = good.asked
    async with asyncio.timeout(10):
        looked = await look_at_logs(callers(bad, good), WatchedLogs())
    assert [one.head.size for one in looked if one.head] == [1, 3]


async def test_what_they_show_is_compared_side_by_side_and_within_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    proving = {"bad": asyncio.Event(), "good": asyncio.Event()}

    async def consistency(caller: Caller, *_: int) -> None:
        proving[caller.called].set()
        await proving["good"].wait()
        raise Refused("no proof today")

    monkeypatch.setattr(log_watch, "consistency", consistency)
    monkeypatch.setattr(log_watch, "COMPARED_WITHIN_S", 2.0)
    watched = WatchedLogs()
    for key in (BAD, GOOD):
        watched.heard(signed(key, 1, 1))
    bad, good = (Caller(name, HeadsTold(own=signed(key, 2, 2))) for name, key in (("bad", BAD), ("good", GOOD)))
    async with asyncio.timeout(10):
        looked = await look_at_logs(callers(bad, good), watched)
        assert ["no proof today" in one.unproved for one in looked] == [True, True]
        monkeypatch.setattr(log_watch, "COMPARED_WITHIN_S", 0.1)
        proving["good"].clear()
        (late,) = await look_at_logs(callers(bad), watched)
    assert "was not compared within" in late.unproved


async def test_heads_that_cannot_be_compared_cost_the_look_at_their_tracker_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poison, honest = signed(BAD, 1, 1), signed(GOOD, 3, 5)

    def hears(self: object, one: Signed[TreeHead]) -> None:
        if one == poison:
            raise ValueError("nobody thought of it")

    monkeypatch.setattr(WatchedLogs, "heard", hears)
    bad, good = await look_at_logs(
        callers(Caller("bad", HeadsTold(own=poison)), Caller("good", HeadsTold(own=honest))), WatchedLogs()
    )
    assert "nobody thought of it" in bad.unproved
    assert (good.head and good.head.size, good.unproved) == (3, "")


async def test_what_is_shown_behind_something_poisonous_is_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = WatchedLogs()
    fork = ForkEvidence(first=signed(GOOD, 3, 5), second=signed(GOOD, 3, 5, b"x" * 32))
    poison = ForkEvidence(first=signed(GOOD, 2, 5), second=signed(GOOD, 2, 5, b"x" * 32))
    watched.heard(fork.first)
    heard: list[Signed[TreeHead]] = []
    told: list[ForkEvidence] = []

    def hears(self: object, one: Signed[TreeHead]) -> None:
        if one == poison.first:
            raise ValueError("nobody thought of it")
        heard.append(one)

    def is_told(self: object, one: ForkEvidence) -> None:
        if one == poison:
            raise ValueError("nobody thought of it")
        told.append(one)

    monkeypatch.setattr(WatchedLogs, "heard", hears)
    monkeypatch.setattr(WatchedLogs, "told", is_told)
    shown = HeadsTold(own=signed(BAD, 1, 1), seen=[poison.first, fork.second], evidence=[poison, fork])
    await look_at_logs(callers(Caller("bad", shown)), watched)
    assert heard[1:] == [fork.second]
    assert told == [fork]


async def test_a_proof_that_cannot_be_looked_at_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> None:
        raise ValueError("nobody thought of it")

    watched = WatchedLogs()
    watched.heard(signed(GOOD, 2, 4))
    monkeypatch.setattr(log_watch, "consistency", fails)
    # Another tracker shows the head of which the proof is asked: the mistake is counted at whose log it is.
    (good, bad) = await look_at_logs(
        callers(
            Caller("good", HeadsTold(own=signed(GOOD, 2, 4))),
            Caller("bad", HeadsTold(own=signed(BAD, 1, 1), seen=[signed(GOOD, 3, 5)])),
        ),
        watched,
    )
    assert "its 3 entries are not shown to continue its 2" in good.unproved
    assert not bad.unproved
