from __future__ import annotations

import random

import pytest

from axonp2p.errors import TrackerUnreachable
from axonp2p.ledger.receipt import Receipts, ReceiptsKept, open_doubly_signed
from axonp2p.reservation.reserving import new_uuid
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.wire.envelope import encode_signed
from peer_daemon.leases import Lease
from peer_daemon.receipts_book import ReceiptsBook
from peer_daemon.receipts_courier import PATIENCE_S, ReceiptsCourier
from tests.fakes import NOW, ManualClock, key_of, make_receipt

PEER, CLIENT = key_of("peer"), key_of("client")
NAMES = ("first", "second", "third")


class FakeTracker:
    """Answers as a tracker would, as far as a courier sees it."""

    def __init__(self, number: int):
        self.tracker = key_of(NAMES[number]).peer_id
        self.address = f"https://192.0.2.{number}:7070"
        self.called = f"tracker {number}"
        self.refuses: dict[str, str] = {}
        self.away = False
        self.got: list[int] = []
        self.tokens: list[bytes] = []

    async def call(self, path, message, answer, limit):
        if self.away:
            raise TrackerUnreachable("away")
        assert isinstance(message, Receipts)
        self.got += [open_doubly_signed(one).number for one in message.receipts]
        self.tokens += message.tokens
        return ReceiptsKept(new=len(message.receipts) - len(self.refuses), known=0, reasons=self.refuses)


class FakeLines:
    """The lines to those trackers, always in the same order."""

    def __init__(self, trackers: list[FakeTracker], clock: ManualClock):
        self._trackers = trackers
        self._clock = clock
        self.health = TrackerHealth([tracker.address for tracker in trackers])
        for tracker in trackers:
            self.health.answered(tracker.address, NOW, tracker=tracker.tracker)

    def in_order(self):
        order = self.health.order(self._clock.now(), random.Random(1))
        return sorted(self._trackers, key=lambda one: self.health.is_away(one.address) or order.index(one.address) < 0)

    async def ask(self, line, ask):
        try:
            return await ask(line)
        except TrackerUnreachable:
            self.health.failed(line.address, self._clock.now(), 0.5)
            raise


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def book(tmp_path, clock):
    book = ReceiptsBook(tmp_path / "receipts.db", PEER, clock)
    yield book
    book.close()


def make_courier(book, clock, count=3):
    trackers = [FakeTracker(number) for number in range(count)]
    return ReceiptsCourier(book, FakeLines(trackers, clock), PEER.peer_id, clock), trackers


def sign(book, issuer, count=1):
    uuid = new_uuid()
    lease = Lease(
        uuid, issuer, PEER.peer_id, CLIENT.peer_id, "job-1", until=10**9, cores=1, memory_mb=256, disk_mb=512,
        token=issuer.encode(),
    )  # fmt: skip
    for number in range(1, count + 1):
        book.sign(encode_signed(CLIENT, make_receipt(CLIENT, PEER, uuid, number)), lease)


async def test_a_receipt_goes_to_the_tracker_that_gave_its_reservation_without_the_token(book, clock):
    courier, (first, second, third) = make_courier(book, clock)
    sign(book, second.tracker, 3)
    assert await courier.hand_in_all()
    assert await courier.hand_in_all()
    assert (first.got, second.got, third.got) == ([], [1, 2, 3], [])
    assert second.tokens == []


async def test_what_its_issuer_refuses_is_not_handed_in_again(book, clock):
    courier, (first, *_) = make_courier(book, clock)
    sign(book, first.tracker, 2)
    first.refuses = {"1": "the reservation is unknown"}
    assert await courier.hand_in_all()
    assert await courier.hand_in_all()
    assert first.got == [1, 2]


async def test_a_silent_tracker_is_waited_for_a_minute_then_another_gets_them_with_the_token(book, clock):
    courier, (first, second, third) = make_courier(book, clock)
    sign(book, first.tracker)
    first.away = True
    assert not await courier.hand_in_all()
    clock.time += PATIENCE_S - 1
    assert not await courier.hand_in_all()
    assert second.got == third.got == []
    clock.time += 2
    assert await courier.hand_in_all()
    assert (second.got, second.tokens, third.got) == ([1], [first.tracker.encode()], [])


async def test_one_that_is_back_within_the_minute_gets_them_itself(book, clock):
    courier, (first, second, _) = make_courier(book, clock)
    sign(book, first.tracker)
    first.away = True
    await courier.hand_in_all()
    first.away = False
    clock.time += PATIENCE_S - 1
    assert await courier.hand_in_all()
    assert (first.got, second.got) == ([1], [])


async def test_receipts_for_tokens_of_its_own_go_to_anyone_at_once(book, clock):
    courier, (first, second, _) = make_courier(book, clock)
    sign(book, PEER.peer_id, 2)
    first.away = True
    assert await courier.hand_in_all()
    assert (second.got, second.tokens) == ([1, 2], [PEER.peer_id.encode()])


async def test_what_one_will_not_take_the_next_one_is_asked_to(book, clock):
    courier, (first, second, _) = make_courier(book, clock)
    sign(book, PEER.peer_id, 2)
    first.refuses = {"0": "no token of a peer counts here"}
    assert await courier.hand_in_all()
    assert (first.got, second.got) == ([1, 2], [1])
    assert await courier.hand_in_all()
    assert first.got == [1, 2]


async def test_with_nobody_alive_they_wait(book, clock):
    courier, trackers = make_courier(book, clock)
    sign(book, PEER.peer_id)
    sign(book, trackers[0].tracker)
    for tracker in trackers:
        tracker.away = True
    assert not await courier.hand_in_all()
    clock.time += 10 * PATIENCE_S
    assert not await courier.hand_in_all()
    for tracker in trackers:
        tracker.away = False
    clock.time += 10 * PATIENCE_S
    assert await courier.hand_in_all()


async def test_a_book_that_cannot_be_read_does_not_end_the_courier(book, clock):
    courier, _ = make_courier(book, clock)
    book.close()
    assert not await courier.hand_in_all()
