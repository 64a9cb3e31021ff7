"""Convictions on their way to a tracker: kept until one has them, over outages and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from axonp2p.client.ledger import convictions as convictions_module
from axonp2p.client.ledger import delivery
from axonp2p.client.ledger.convictions import Convictions
from axonp2p.client.storage.trust_book import TRUST_FILE, TrustBook
from axonp2p.errors import TrackerUnreachable
from axonp2p.ledger.voiding import VoidingHandedIn, VoidingKept
from axonp2p.wire.codec import encode
from tests.fakes import key_of
from tests.laboratory.convictions import evidence_against, voiding_of

CLIENT = key_of("client")
RESERVATION = "00000000-0000-4000-8000-000000000001"
VOIDINGS = [voiding_of(CLIENT, evidence_against(key_of(name), CLIENT, "job-1", RESERVATION)) for name in ("ada", "ben")]


class Trackers:
    """Stands for the trackers: the first `away` times none answers; then they give `reason`."""

    def __init__(self, away: int = 0, reason: str = "", others: Sequence[Trackers] = ()) -> None:
        self.away, self.reason, self.others = away, reason, others
        self.taken: list[VoidingHandedIn] = []

    def in_order(self) -> list[Trackers]:
        return [self, *self.others]

    async def ask(self, line: Trackers, ask: Callable[[Any], Awaitable[Any]]) -> Any:
        if line.away:
            raise TrackerUnreachable("no tracker answers")
        return await ask(line)

    async def first(self, ask: Callable[[Any], Awaitable[Any]]) -> tuple[Any, Any]:
        if self.away:
            self.away -= 1
            raise TrackerUnreachable("no tracker answers")
        return self, await ask(self)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hand_in(line: Trackers, voiding: VoidingHandedIn) -> VoidingKept:
        line.taken.append(voiding)
        return VoidingKept(new=not line.reason, reason=line.reason)

    monkeypatch.setattr(convictions_module, "hand_in_voiding", hand_in)
    monkeypatch.setattr(delivery, "LAST_PAUSE_S", 0.01)


@pytest.fixture
def book(tmp_path: Path) -> TrustBook:
    return TrustBook(tmp_path / TRUST_FILE)


async def settled(book: TrustBook, trackers: Any) -> None:
    async with asyncio.timeout(30), Convictions(book, trackers) as convictions:
        await convictions.settle(3600)


async def test_what_is_in_the_book_is_handed_in_once(book: TrustBook) -> None:
    trackers: Any = Trackers()
    async with asyncio.timeout(30), Convictions(book, trackers) as convictions:
        for one in VOIDINGS:
            book.add_conviction(encode(one))
            convictions.news()
        await convictions.settle(3600)
    assert {one.voided.payload for one in trackers.taken} == {one.voided.payload for one in VOIDINGS}
    assert len(trackers.taken) == 2
    assert book.convictions() == []
    await settled(book, trackers)
    assert len(trackers.taken) == 2


async def test_while_no_tracker_answers_it_is_tried_again(book: TrustBook) -> None:
    book.add_conviction(encode(VOIDINGS[0]))
    trackers: Any = Trackers(away=2)
    await settled(book, trackers)
    assert trackers.taken == VOIDINGS[:1]


async def test_what_no_tracker_took_is_handed_in_by_a_later_job(book: TrustBook) -> None:
    book.add_conviction(encode(VOIDINGS[0]))
    await settled(book, Trackers(away=10**6))
    assert len(book.convictions()) == 1
    trackers: Any = Trackers()
    await settled(book, trackers)
    assert trackers.taken == VOIDINGS[:1]


async def test_what_two_trackers_refuse_for_good_is_not_tried_again(book: TrustBook) -> None:
    book.add_conviction(encode(VOIDINGS[0]))
    why = "the evidence does not convict otter"
    away, second, third = Trackers(away=1), Trackers(reason=why), Trackers(reason=why)
    await settled(book, Trackers(reason=why, others=[away, second, third]))
    assert (len(second.taken), len(third.taken)) == (1, 0)
    assert book.convictions() == []


async def test_one_tracker_that_lies_takes_nothing_out_of_the_book(book: TrustBook) -> None:
    book.add_conviction(encode(VOIDINGS[0]))
    liar = Trackers(reason="no")
    await settled(book, liar)
    assert (len(liar.taken), len(book.convictions())) == (1, 1)
    good = Trackers()
    await settled(book, Trackers(reason="no", others=[good]))
    assert (good.taken, book.convictions()) == (VOIDINGS[:1], [])
