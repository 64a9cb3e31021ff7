"""Receipts: numbered, signed by both, handed in, and never counted wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from axonp2p.client.leasing.lease_sides import Reservation
from axonp2p.client.ledger import delivery, receipt_asking
from axonp2p.client.ledger import receipts as receipts_module
from axonp2p.client.ledger.receipt_asking import SignatureAsking
from axonp2p.client.ledger.receipts import ReceiptBook, ReceiptOffice
from axonp2p.errors import BadSignature, MalformedMessage, PeerMisbehaved, TrackerUnreachable
from axonp2p.ledger.receipt import DoublySigned, Receipt, ReceiptsKept, Work, accept, open_receipt
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed
from tests.fakes import NOW, ManualClock, key_of

CLIENT, OTTER, HERON = key_of("client"), key_of("otter"), key_of("heron")
RESERVATION = new_uuid()
LAB = "https://lab:7070"
TOKEN: Signed[Token] = Signed(signer=key_of("tracker").peer_id, payload=b"a token", signature=bytes(64))


def done(round: int, flops: int = 1000) -> Work:
    return Work(unit=round, flops=flops, samples=10, milliseconds=250)


def opened(data: bytes) -> Receipt:
    signed: Signed[Receipt] = decode_as(data, Signed[Receipt], 2048)
    return open_receipt(signed)


def answer(data: bytes, key: Any = OTTER) -> bytes:
    signed: Signed[Receipt] = decode_as(data, Signed[Receipt], 2048)
    return encode(accept(key, signed))


def test_receipts_count_from_one_for_each_peer_and_reservation() -> None:
    book, other = ReceiptBook(CLIENT, "digits-1"), new_uuid()
    places = [(RESERVATION, OTTER), (RESERVATION, OTTER), (RESERVATION, HERON), (other, OTTER), (RESERVATION, OTTER)]
    numbers = [opened(book.write(uuid, key.peer_id, done(5), NOW)).number for uuid, key in places]
    assert numbers == [1, 2, 1, 1, 3]
    receipt = opened(book.write(RESERVATION, OTTER.peer_id, done(7, flops=42), NOW))
    assert (receipt.client, receipt.peer, receipt.job) == (CLIENT.peer_id, OTTER.peer_id, "digits-1")
    assert (receipt.round, receipt.flops, receipt.samples, receipt.milliseconds) == (7, 42, 10, 250)


def test_only_what_was_sent_counts_and_only_once() -> None:
    book = ReceiptBook(CLIENT, "digits-1")
    data = book.write(RESERVATION, OTTER.peer_id, done(0), NOW)
    assert (book.unsigned, book.flops) == (1, {})
    back = answer(data)
    book.signed(OTTER.peer_id, back)
    assert (book.unsigned, book.flops) == (0, {OTTER.peer_id: 1000})
    with pytest.raises(PeerMisbehaved):
        book.signed(OTTER.peer_id, back)
    assert book.flops == {OTTER.peer_id: 1000}


def test_a_wrong_answer_is_the_peers_misbehaviour() -> None:
    book = ReceiptBook(CLIENT, "digits-1")
    data = book.write(RESERVATION, OTTER.peer_id, done(0), NOW)
    with pytest.raises(BadSignature):
        book.signed(OTTER.peer_id, answer(data, HERON))
    with pytest.raises(MalformedMessage):
        book.signed(OTTER.peer_id, b"rubbish")
    with pytest.raises(PeerMisbehaved):
        book.signed(HERON.peer_id, answer(data))
    stranger = ReceiptBook(CLIENT, "digits-2").write(RESERVATION, OTTER.peer_id, done(0), NOW)
    with pytest.raises(PeerMisbehaved):
        book.signed(OTTER.peer_id, answer(stranger))
    assert (book.unsigned, book.awaited) == (1, 1)
    book.give_up(RESERVATION, OTTER.peer_id)
    assert (book.unsigned, book.awaited) == (1, 0)


class Peer:
    """As much of a lease as the office needs, with a peer that signs at once or never."""

    def __init__(self, key: Any, tracker: str = LAB, *, signs: bool = True) -> None:
        self.row = type("Row", (), {"peer": key.peer_id})
        self.promise = Reservation(RESERVATION, TOKEN, "tracker", tracker)
        self.name, self.hung_up = "peer", False
        self.office: Any = None
        self._key, self._signs = key, signs

    def ask_signature(self, receipt: bytes) -> None:
        if self._signs:
            self.office.signed(self, answer(receipt, self._key))


class Trackers:
    """Stands for the trackers: the first `away` times none answers."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.preferred: list[str] = []

    async def first(self, ask: Callable[[Any], Awaitable[Any]], *, before: str = "") -> tuple[Any, Any]:
        if self.away:
            self.away -= 1
            raise TrackerUnreachable("no tracker answers")
        self.preferred.append(before)
        return self, await ask(self)


@pytest.fixture
def handed_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many receipts and tokens trackers were given at a time."""
    taken: list[tuple[int, int]] = []

    async def hand_in(line: Any, receipts: Sequence[DoublySigned], tokens: Sequence[bytes]) -> ReceiptsKept:
        taken.append((len(receipts), len(tokens)))
        return ReceiptsKept(new=len(receipts), known=0)

    monkeypatch.setattr(receipts_module, "hand_in", hand_in)
    monkeypatch.setattr(delivery, "GATHER_S", 0.01)
    for module in (delivery, receipts_module):
        monkeypatch.setattr(module, "LAST_PAUSE_S", 0.01)
    return taken


def office_of(trackers: Trackers) -> ReceiptOffice:
    lines: Any = trackers
    return ReceiptOffice(ReceiptBook(CLIENT, "digits-1"), lines, ManualClock())


async def test_receipts_are_handed_in_together_with_their_token(handed_in: list[tuple[int, int]]) -> None:
    trackers = Trackers()
    async with office_of(trackers) as office:
        peers: list[Any] = [Peer(OTTER), Peer(HERON)]
        for peer in peers:
            peer.office = office
            office.ask(office.write([(peer, done(0))]))
        settled = await office.settle(10)
    assert handed_in == [(2, 1)]
    assert trackers.preferred == [LAB]
    assert (settled.kept, settled.unsigned, settled.not_taken) == (2, 0, 0)


async def test_those_of_a_peers_own_token_go_to_any_tracker(handed_in: list[tuple[int, int]]) -> None:
    trackers = Trackers()
    async with office_of(trackers) as office:
        peer: Any = Peer(OTTER, tracker="")
        peer.office = office
        office.ask(office.write([(peer, done(0))]))
        settled = await office.settle(10)
    assert (handed_in, trackers.preferred, settled.kept) == ([(1, 1)], [""], 1)


async def test_while_no_tracker_answers_they_are_asked_again(handed_in: list[tuple[int, int]]) -> None:
    async with office_of(Trackers(away=2)) as office:
        peer: Any = Peer(OTTER)
        peer.office = office
        office.ask(office.write([(peer, done(0))]))
        settled = await office.settle(10)
    assert handed_in == [(1, 1)]
    assert (settled.kept, settled.not_taken) == (1, 0)


async def test_with_no_tracker_at_all_the_end_is_not_waited_for_and_said(handed_in: list[tuple[int, int]]) -> None:
    async with office_of(Trackers(away=10**6)) as office:
        peer: Any = Peer(OTTER)
        peer.office = office
        office.ask(office.write([(peer, done(0))]))
        async with asyncio.timeout(30):
            settled = await office.settle(3600)
    assert (settled.kept, settled.unsigned, settled.not_taken) == (0, 0, 1)
    assert "no tracker answers" in settled.reason
    assert "their peers keep them" in settled.reason


async def test_what_is_missing_is_said_after_a_bounded_wait(handed_in: list[tuple[int, int]]) -> None:
    async with office_of(Trackers(away=10**6)) as office:
        silent: Any = Peer(OTTER, signs=False)
        unheard: Any = Peer(HERON)
        for peer in (silent, unheard):
            peer.office = office
            office.ask(office.write([(peer, done(0))]))
        settled = await office.settle(0.2)
    assert (settled.kept, settled.unsigned, settled.not_taken) == (0, 1, 1)


async def test_a_peer_that_has_gone_is_not_waited_for(handed_in: list[tuple[int, int]]) -> None:
    async with office_of(Trackers()) as office:
        gone: Any = Peer(OTTER, signs=False)
        gone.office = office
        office.ask(office.write([(gone, done(0))]))
        gone.hung_up = True
        office.ask(office.write([(gone, done(1))]))
        async with asyncio.timeout(30):
            settled = await office.settle(3600)
    assert settled.unsigned == 2


def test_the_next_life_of_a_job_goes_on_counting_and_asks_for_what_was_not_signed() -> None:
    book = ReceiptBook(CLIENT, "digits-1")
    first, second = (book.write(RESERVATION, OTTER.peer_id, done(number), NOW) for number in range(2))
    book.signed(OTTER.peer_id, answer(first))
    kept = book.keep()
    after = ReceiptBook(CLIENT, "digits-1", kept)
    assert after.open(RESERVATION, OTTER.peer_id) == [second]
    assert opened(after.write(RESERVATION, OTTER.peer_id, done(2), NOW)).number == 3
    after.signed(OTTER.peer_id, answer(second))
    assert after.flops == {OTTER.peer_id: 1000}
    # Of whoever is not there any more nothing is waited for.
    without = ReceiptBook(CLIENT, "digits-1", kept)
    without.go_on_with({(RESERVATION, HERON.peer_id)})
    assert (without.unsigned, without.keep()) == (0, [])
    after.give_up(RESERVATION, OTTER.peer_id)
    assert after.keep() == []


class FullDisk(Peer):
    """Signs in order, as `peer_daemon.earnings.receipts_book` does, while its disk has room."""

    def __init__(self, key: Any, *, room: bool = False) -> None:
        super().__init__(key)
        self.room = room
        self.last = 0
        self.asked: list[int] = []

    def ask_signature(self, receipt: bytes) -> None:
        number = opened(receipt).number
        self.asked.append(number)
        # As over a session: never before the caller has gone on.
        asyncio.get_running_loop().call_soon(self._answer, number, receipt)

    def _answer(self, number: int, receipt: bytes) -> None:
        if number != self.last + 1:
            self.office.refused(self, f"the receipt has the wrong number: {number}, not {self.last + 1}")
        elif not self.room:
            self.office.refused(self, "this peer cannot keep the receipt: database or disk is full")
        else:
            self.last = number
            self.office.signed(self, answer(receipt, self._key))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_receipt_refused_once_is_asked_for_again_and_those_after_it_in_order(
    handed_in: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt_asking, "FIRST_PAUSE_S", 0.01)
    async with office_of(Trackers()) as office:
        peer: Any = FullDisk(OTTER, room=True)
        peer.office = office
        office.ask(office.write([(peer, done(0))]))
        await until(lambda: peer.last == 1)
        peer.room = False
        for number in range(1, 4):
            office.ask(office.write([(peer, done(number))]))
        await until(lambda: len(peer.asked) > 4)
        assert peer.asked[4:] == [2] * len(peer.asked[4:])  # the others wait until it is signed
        office.ask(office.write([(peer, done(4))]))
        assert 5 not in peer.asked
        peer.room = True
        await until(lambda: peer.last == 5)
        office.ask(office.write([(peer, done(5))]))
        settled = await office.settle(10)
    assert (settled.kept, settled.unsigned, settled.reason) == (6, 0, "")


async def test_at_the_end_it_is_asked_at_once_and_the_true_reason_is_told(handed_in: list[tuple[int, int]]) -> None:
    async with office_of(Trackers()) as office:
        peers: list[Any] = [FullDisk(OTTER), FullDisk(HERON)]
        for peer in peers:
            peer.office = office
            for number in range(3):
                office.ask(office.write([(peer, done(number))]))
        await until(lambda: all(len(peer.asked) == 3 for peer in peers))
        await asyncio.sleep(0)
        peers[1].room = True
        async with asyncio.timeout(10):
            settled = await office.settle(3600)
    assert (settled.kept, settled.unsigned) == (3, 3)
    assert settled.reason == "peer refused: this peer cannot keep the receipt: database or disk is full"


async def test_who_went_away_is_told_as_that(handed_in: list[tuple[int, int]]) -> None:
    async with office_of(Trackers()) as office:
        gone: Any = Peer(OTTER, signs=False)
        gone.office, gone.hung_up = office, True
        office.ask(office.write([(gone, done(0))]))
        settled = await office.settle(10)
    assert settled.reason == "peer went away before it had signed"


def test_what_was_on_its_way_when_one_was_refused_says_nothing_new() -> None:
    asking = SignatureAsking()
    assert asking.flows
    assert asking.refused("disk is full") == 2.0
    assert asking.refused("wrong number: 2, not 1") is None
    assert (asking.flows, asking.refusal) == (False, "disk is full")
    assert asking.try_again()
    assert not asking.try_again()
    assert asking.refused("disk is full") == 4.0
    assert not asking.signed()  # an answer to what was asked before
    assert asking.try_again()
    assert asking.signed()
    assert (asking.flows, asking.refusal) == (True, "")
    assert not asking.signed()
    pauses = []
    for _ in range(7):
        pauses.append(asking.refused("disk is full"))
        asking.try_again()
    assert pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
