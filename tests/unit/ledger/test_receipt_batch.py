"""What a message to a tracker holds never exceeds its limit, and always gets somewhere."""

from __future__ import annotations

from axonp2p.ledger.receipt import MOST_RECEIPTS, RECEIPTS_LIMIT, DoublySigned, Receipts, receipt_batch_of
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import Token
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import ENVELOPE_OVERHEAD
from tests.fakes import key_of, make_receipt, sign_both

CLIENT, PEER = key_of("client"), key_of("peer")
LARGEST_TOKEN = Token.LIMIT + ENVELOPE_OVERHEAD


def doubly(number: int = 1) -> DoublySigned:
    return sign_both(CLIENT, PEER, make_receipt(CLIENT, PEER, new_uuid(), number, job="j" * 64))


def size_of(receipts: list[DoublySigned], tokens: list[bytes]) -> int:
    return len(encode(Receipts(receipts=receipts, tokens=tokens)))


def test_nothing_makes_nothing():
    batch = receipt_batch_of([])
    assert (batch.receipts, batch.tokens) == ([], [])


def test_receipts_of_one_reservation_share_its_token():
    waiting = [(doubly(number), b"token") for number in range(1, 6)]
    batch = receipt_batch_of(waiting)
    assert batch.receipts == [one for one, _ in waiting]
    assert batch.tokens == [b"token"]


def test_a_receipt_whose_token_is_known_there_travels_alone():
    assert receipt_batch_of([(doubly(), b"")]).tokens == []


def test_without_tokens_as_many_as_a_message_may_hold():
    one = doubly()
    batch = receipt_batch_of([(one, b"")] * (MOST_RECEIPTS + 50))
    assert len(batch.receipts) == MOST_RECEIPTS
    assert size_of(batch.receipts, batch.tokens) <= RECEIPTS_LIMIT


def test_the_largest_tokens_still_leave_room_for_receipts():
    one = doubly()
    batch = receipt_batch_of([(one, number.to_bytes(2) * (LARGEST_TOKEN // 2)) for number in range(MOST_RECEIPTS)])
    assert 20 <= len(batch.receipts) < MOST_RECEIPTS
    assert size_of(batch.receipts, batch.tokens) <= RECEIPTS_LIMIT
    assert len(batch.receipts) == len(batch.tokens)
