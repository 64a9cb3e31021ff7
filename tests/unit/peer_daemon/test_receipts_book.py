from __future__ import annotations

import pytest

from axonp2p.errors import AxonError, BadSignature, Refused, SettingsError, TrackerUnreachable
from axonp2p.identity.keys import PrivateKey
from axonp2p.ledger.receipt import DoublySigned, Receipt, Receipts, ReceiptsKept, open_doubly_signed
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import encode_signed
from peer_daemon.leases import Lease
from peer_daemon.receipts_book import ReceiptsBook
from peer_daemon.receipts_courier import ReceiptsCourier

CLIENT, PEER, STRANGER, TRACKER = (PrivateKey(letter * 32) for letter in (b"c", b"p", b"s", b"t"))
ISSUER = TRACKER.peer_id
UUID = "00000000-0000-4000-8000-000000000001"
LEASE = Lease(UUID, ISSUER, PEER.peer_id, CLIENT.peer_id, "digits", until=10**9, cores=1, memory_mb=256, disk_mb=512)


def receipt(number: int, **changes) -> Receipt:
    fields = {
        "reservation": UUID,
        "number": number,
        "job": "digits",
        "client": CLIENT.peer_id,
        "peer": PEER.peer_id,
        "round": number - 1,
        "flops": 10**9,
        "samples": 320,
        "milliseconds": 900,
        "issued": 10**9,
    }
    return Receipt(**{**fields, **changes})


@pytest.fixture
def book(tmp_path):
    book = ReceiptsBook(tmp_path / "receipts.db", PEER)
    yield book
    book.close()


def test_the_next_receipt_is_signed_and_kept(book, tmp_path):
    for number in (1, 2):
        doubly = decode_as(book.sign(encode_signed(CLIENT, receipt(number)), LEASE), DoublySigned, 4096)
        assert open_doubly_signed(doubly).number == number
    again = ReceiptsBook(tmp_path / "receipts.db", PEER)
    assert [one.number for one in again.waiting(ISSUER)] == [1, 2]
    assert again.sign(encode_signed(CLIENT, receipt(3)), LEASE)
    again.close()


def test_the_same_receipt_again_gets_the_same_answer(book):
    envelope = encode_signed(CLIENT, receipt(1))
    assert book.sign(envelope, LEASE) == book.sign(envelope, LEASE)
    assert len(book.waiting(ISSUER)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 2},
        {"job": "other"},
        {"peer": STRANGER.peer_id},
        {"reservation": UUID.replace("1", "2")},
    ],
)
def test_a_receipt_for_something_else_is_refused(book, changes):
    with pytest.raises(Refused):
        book.sign(encode_signed(CLIENT, receipt(**{"number": 1, **changes})), LEASE)
    assert book.waiting(ISSUER) == []
    assert book.sign(encode_signed(CLIENT, receipt(1)), LEASE)


def test_another_content_under_a_used_number_is_refused(book):
    book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
    with pytest.raises(Refused, match="number"):
        book.sign(encode_signed(CLIENT, receipt(1, flops=5)), LEASE)


def test_a_receipt_of_another_client_or_without_its_signature_is_refused(book):
    with pytest.raises(Refused, match="client"):
        book.sign(encode_signed(STRANGER, receipt(1, client=STRANGER.peer_id)), LEASE)
    with pytest.raises(BadSignature):
        book.sign(encode_signed(STRANGER, receipt(1)), LEASE)
    with pytest.raises(AxonError):
        book.sign(encode_signed(CLIENT, receipt(1))[:-1], LEASE)
    assert book.waiting(ISSUER) == []


class FakeTracker:
    """Answers as a tracker would, as far as a courier sees it."""

    def __init__(self, refuses: dict[str, str] | None = None, away: bool = False):
        self.called = "tracker"
        self.refuses = refuses or {}
        self.away = away
        self.got: list[int] = []

    async def call(self, path, message, answer, limit):
        if self.away:
            raise TrackerUnreachable("away")
        assert isinstance(message, Receipts)
        self.got += [open_doubly_signed(one).number for one in message.receipts]
        return ReceiptsKept(new=len(message.receipts) - len(self.refuses), known=0, reasons=self.refuses)


async def test_what_the_tracker_has_is_not_handed_in_again(book):
    for number in (1, 2, 3):
        book.sign(encode_signed(CLIENT, receipt(number)), LEASE)
    tracker = FakeTracker(refuses={"1": "the reservation is unknown"})
    courier = ReceiptsCourier(book)
    courier.reached(ISSUER, tracker)
    await courier.hand_in_all()
    await courier.hand_in_all()
    assert tracker.got == [1, 2, 3]


async def test_a_receipt_goes_to_the_tracker_that_gave_its_reservation_and_to_no_other(book):
    book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
    other, right = FakeTracker(), FakeTracker()
    courier = ReceiptsCourier(book)
    courier.reached(STRANGER.peer_id, other)
    await courier.hand_in_all()
    assert len(book.waiting(ISSUER)) == 1
    courier.reached(ISSUER, right)
    await courier.hand_in_all()
    assert (other.got, right.got) == ([], [1])


async def test_what_the_tracker_did_not_take_waits(book):
    book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
    courier = ReceiptsCourier(book)
    courier.reached(ISSUER, FakeTracker(away=True))
    await courier.hand_in_all()
    assert len(book.waiting(ISSUER)) == 1


def test_a_file_that_cannot_be_used_is_no_bug(book):
    book.close()
    with pytest.raises(SettingsError):
        book.waiting(ISSUER)
    with pytest.raises(Refused, match="cannot keep"):
        book.sign(encode_signed(CLIENT, receipt(1)), LEASE)
