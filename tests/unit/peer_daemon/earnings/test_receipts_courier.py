from __future__ import annotations

import random

import pytest

from axonp2p.errors import TrackerUnreachable
from axonp2p.ledger.log_messages import HistoryAsked, Included, KeyHistoryTold
from axonp2p.ledger.merkle import inclusion_path, leaf_hash, root
from axonp2p.ledger.receipt import Receipts, ReceiptsKept, open_doubly_signed
from axonp2p.ledger.tiles import node_reader, tiles_after
from axonp2p.ledger.tree_head import TreeHead
from axonp2p.reservation.reserving import new_uuid
from axonp2p.table.tracker_health import TrackerHealth
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import encode_signed
from axonp2p.wire.envelope import sign as wire_sign
from peer_daemon.earnings.receipts_book import ReceiptsBook
from peer_daemon.earnings.receipts_courier import PROVED_WITHIN_S, ReceiptsCourier
from peer_daemon.lending.leases import LentSlot
from tests.fakes import NOW, ManualClock, key_of, make_receipt

PEER, CLIENT = key_of("peer"), key_of("client")
NAMES = ("first", "second", "third")


class FakeTracker:
    """Answers as a tracker would, as far as a courier sees it."""

    def __init__(self, number: int):
        self.key = key_of(NAMES[number])
        self.tracker = self.key.peer_id
        self.learnt = False
        self.forgets = False
        self.log: list[bytes] = []
        self.address = f"https://192.0.2.{number}:7070"
        self.called = f"tracker {number}"
        self.refuses: dict[str, str] = {}
        self.away = False
        self.got: list[int] = []
        self.tokens: list[bytes] = []

    async def call(self, path, message, answer, limit):
        if self.away:
            raise TrackerUnreachable("away")
        if isinstance(message, HistoryAsked):
            return self.history(message)
        assert isinstance(message, Receipts)
        self.got += [open_doubly_signed(one).number for one in message.receipts]
        self.tokens += message.tokens
        if not self.forgets:
            taken = (one for index, one in enumerate(message.receipts) if str(index) not in self.refuses)
            self.log += [encode(one) for one in taken]
        return ReceiptsKept(new=len(message.receipts) - len(self.refuses), known=0, reasons=self.refuses)

    def history(self, asked):
        tiles = tiles_after(0, [leaf_hash(entry) for entry in self.log], lambda height, index: b"")
        node, size = node_reader(lambda height, index: tiles.get((height, index), b"")), len(self.log)
        head = TreeHead(tracker=self.tracker, log="a" * 32, size=size, root=root(size, node), time=int(NOW))
        numbers = range(min(asked.before or size, size) - 1, -1, -1)
        included = [Included(number=n, entry=self.log[n], path=inclusion_path(n, size, node)) for n in numbers]
        return KeyHistoryTold(head=wire_sign(self.key, head), entries=included[:100])


class FakeLines:
    """The lines to those trackers, always in the same order."""

    def __init__(self, trackers: list[FakeTracker], clock: ManualClock):
        self._trackers = trackers
        self._clock = clock
        self.health = TrackerHealth([tracker.address for tracker in trackers if not tracker.learnt])
        for tracker in trackers:
            if tracker.learnt:
                self.health.learn(tracker.address, NOW)
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


def make_courier(book, clock, count=3, learnt=()):
    trackers = [FakeTracker(number) for number in range(count)]
    for number in learnt:
        trackers[number].learnt = True
    return ReceiptsCourier(book, FakeLines(trackers, clock), PEER.peer_id, clock), trackers


def sign(book, issuer, count=1):
    uuid = new_uuid()
    lease = LentSlot(
        uuid, issuer, PEER.peer_id, CLIENT.peer_id, "job-1", "train", until=10**9, cores=1, memory_mb=256, disk_mb=512,
        token=issuer.encode(),
    )  # fmt: skip
    for number in range(1, count + 1):
        book.sign(encode_signed(CLIENT, make_receipt(CLIENT, PEER, uuid, number)), lease)


async def test_a_receipt_goes_to_its_issuer_and_to_another_one_with_the_token_and_is_proved_there(book, clock):
    courier, (first, second, third) = make_courier(book, clock)
    sign(book, second.tracker, 3)
    assert await courier.hand_in_all()
    assert await courier.hand_in_all()
    assert (first.got, second.got, third.got) == ([1, 2, 3], [1, 2, 3], [])
    assert first.tokens == second.tokens == [second.tracker.encode()]
    assert {one.tracker for one in book.some_confirmed(3, [], first.tracker)} == {first.tracker}


@pytest.mark.parametrize("refuses", [False, True])
async def test_an_unknown_issuer_that_forgets_or_refuses_takes_nothing_away(book, clock, refuses):
    courier, (good, _, bad) = make_courier(book, clock, learnt=[1, 2])
    bad.forgets, bad.refuses = True, {"0": "never heard of it"} if refuses else {}
    sign(book, bad.tracker)
    good.away = True
    assert not await courier.hand_in_all()
    assert book.issuers() == [bad.tracker]
    good.away = False
    clock.time += 1000
    assert await courier.hand_in_all()
    assert good.got == [1]
    assert book.earnings.acknowledged


async def test_two_unknown_ones_that_stand_by_each_other_settle_nothing(book, clock):
    courier, (good, accomplice, bad) = make_courier(book, clock, learnt=[1, 2])
    sign(book, bad.tracker)
    good.refuses = {"0": "a reservation of a stranger"}
    assert await courier.hand_in_all()  # it is given up by the word of the one that counts, and not before
    assert (accomplice.got, good.got) == ([1], [1])
    assert not book.earnings.acknowledged


async def test_those_of_the_settings_get_it_before_an_unknown_one_that_would_swallow_it(book, clock):
    courier, (swallows, good, bad) = make_courier(book, clock, learnt=[0, 2])
    swallows.forgets = bad.forgets = True
    sign(book, bad.tracker)
    assert await courier.hand_in_all()
    assert (swallows.got, good.got) == ([], [1])


async def test_one_that_took_it_and_does_not_prove_it_is_not_waited_for(book, clock):
    courier, (first, second, third) = make_courier(book, clock)
    first.forgets = True
    sign(book, third.tracker)
    assert not await courier.hand_in_all()
    assert (first.got, second.got) == ([1], [])
    clock.time += PROVED_WITHIN_S + 1
    assert await courier.hand_in_all()
    assert second.got == [1]


async def test_the_only_tracker_settles_what_it_issued_by_its_own_proof(book, clock):
    courier, (only,) = make_courier(book, clock, 1)
    only.forgets = True
    sign(book, only.tracker)
    assert not await courier.hand_in_all()
    only.forgets = False
    sign(book, only.tracker, 2)
    assert not await courier.hand_in_all()
    assert [one.number for one in book.unproved(only.tracker)] == [1]


async def test_what_all_trackers_of_the_settings_refuse_is_not_handed_in_again(book, clock):
    courier, trackers = make_courier(book, clock, 2)
    sign(book, trackers[0].tracker, 2)
    for tracker in trackers:
        tracker.refuses = {"1": "its client is banned"}
    assert await courier.hand_in_all()
    assert await courier.hand_in_all()
    assert [tracker.got for tracker in trackers] == [[1, 2], [1, 2]]


async def test_receipts_for_tokens_of_its_own_go_to_anyone(book, clock):
    courier, (first, second, _) = make_courier(book, clock)
    sign(book, PEER.peer_id, 2)
    first.away = True
    assert await courier.hand_in_all()
    assert (second.got, second.tokens) == ([1, 2], [PEER.peer_id.encode()])


async def test_many_are_proved_in_pages(book, clock):
    courier, (first, *_) = make_courier(book, clock, 2)
    sign(book, PEER.peer_id, 230)
    assert await courier.hand_in_all()
    assert len(first.got) == 230


async def test_with_nobody_alive_they_wait(book, clock):
    courier, trackers = make_courier(book, clock)
    sign(book, PEER.peer_id)
    sign(book, trackers[0].tracker)
    for tracker in trackers:
        tracker.away = True
    assert not await courier.hand_in_all()
    clock.time += 600
    assert not await courier.hand_in_all()
    for tracker in trackers:
        tracker.away = False
    clock.time += 600
    assert await courier.hand_in_all()


async def test_a_book_that_cannot_be_read_does_not_end_the_courier(book, clock):
    courier, _ = make_courier(book, clock)
    book.close()
    assert not await courier.hand_in_all()
