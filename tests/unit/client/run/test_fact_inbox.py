"""Facts about peers: in their order, so many words of each, and nothing more of one that broke the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axonp2p.client.run.fact_inbox import Fact, FactInbox, OwnerSaid, PeerCame, PeerGone, WorkerSaid
from axonp2p.errors import PeerMisbehaved, SettingsError
from axonp2p.jobs.messages import HandBack
from axonp2p.wire.frame import Frame, pack_frame

MOST = 3
WORD = memoryview(pack_frame(HandBack(reason="a frame of any kind", seconds=1), b"word"))


def inbox(opened: Any = None) -> FactInbox[bytes]:
    async def as_it_is(rank: int, frame: Frame) -> bytes | None:
        return bytes(frame.payload) if opened is None else opened(rank, bytes(frame.payload))

    return FactInbox(as_it_is, MOST)


async def all_of(box: FactInbox[bytes]) -> list[Fact[bytes] | None]:
    return [await box.next(0.0) for _ in range(box._facts.qsize())]


async def test_facts_come_out_in_their_order() -> None:
    box = inbox()
    back = HandBack(reason="wanted", seconds=30)
    await box.joined(1, "heron")
    await box.heard(1, WORD, signed=None)
    box.owner_says(1, back)
    await box.lost(1, "it hung up")
    assert await all_of(box) == [PeerCame(1), WorkerSaid(1, b"word"), OwnerSaid(1, back), PeerGone(1, "it hung up")]


async def test_one_that_says_too_much_is_out_and_others_are_heard() -> None:
    box = inbox()
    for _ in range(10 * MOST):
        await box.heard(1, WORD, signed=None)
    await box.heard(2, WORD, signed=None)
    words = [WorkerSaid(1, b"word")] * MOST
    reason = "its worker broke the protocol: it says more than can be dealt with"
    assert await all_of(box) == [*words, PeerGone(1, reason), WorkerSaid(2, b"word")]


async def test_words_that_were_dealt_with_do_not_count() -> None:
    box = inbox()
    for _ in range(10 * MOST):
        await box.heard(1, WORD, signed=None)
        assert await box.next(0.0) == WorkerSaid(1, b"word")


async def test_nothing_is_heard_of_one_that_broke_the_protocol() -> None:
    def refuse(rank: int, word: bytes) -> bytes:
        raise PeerMisbehaved("not like that")

    box = inbox(refuse)
    await box.heard(1, WORD, signed=None)
    await box.heard(1, WORD, signed=None)
    await box.heard(2, memoryview(b"no frame"), signed=None)
    first, second = await all_of(box)
    assert first == PeerGone(1, "its worker broke the protocol: not like that")
    assert isinstance(second, PeerGone)


async def test_a_fault_of_this_disk_is_raised_and_no_fault_of_the_peer() -> None:
    def full(rank: int, word: bytes) -> bytes:
        raise SettingsError("the disk is full")

    box = inbox(full)
    await box.heard(1, WORD, signed=None)
    with pytest.raises(SettingsError, match="full"):
        await box.next(0.0)


async def test_a_part_of_a_word_is_no_fact_and_whoever_waits_can_be_woken() -> None:
    box = inbox(lambda rank, word: None)
    await box.heard(1, WORD, signed=None)
    assert box.empty
    waiting = asyncio.ensure_future(box.next(60.0))
    await asyncio.sleep(0)
    box.put(None)
    assert await waiting is None
