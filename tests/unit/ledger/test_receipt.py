from __future__ import annotations

import msgspec
import pytest

from axonp2p.errors import BadSignature, MalformedMessage, MessageTooLarge
from axonp2p.ledger.receipt import (
    MOST_RECEIPTS,
    RECEIPTS_KEPT_LIMIT,
    RECEIPTS_LIMIT,
    Receipt,
    Receipts,
    ReceiptsKept,
    accept,
    open_doubly_signed,
    open_receipt,
)
from axonp2p.reservation.reserving import new_uuid
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import key_of, make_receipt, sign_both

CLIENT, PEER, OTHER = key_of("client"), key_of("peer"), key_of("other")


def test_what_both_signed_is_believed():
    receipt = make_receipt(CLIENT, PEER, new_uuid())
    assert open_doubly_signed(sign_both(CLIENT, PEER, receipt)) == receipt


def test_another_clients_signature_is_refused():
    receipt = make_receipt(CLIENT, PEER, new_uuid())
    with pytest.raises(BadSignature, match="was signed by"):
        open_receipt(sign(OTHER, receipt))


def test_another_peers_counter_signature_is_refused():
    receipt = make_receipt(CLIENT, PEER, new_uuid())
    with pytest.raises(BadSignature):
        open_doubly_signed(sign_both(CLIENT, OTHER, receipt))


def test_the_clients_own_signature_is_no_counter_signature():
    receipt = make_receipt(CLIENT, PEER, new_uuid())
    doubly = sign_both(CLIENT, PEER, receipt)
    with pytest.raises(BadSignature):
        open_doubly_signed(msgspec.structs.replace(doubly, peer_signature=doubly.receipt.signature))


def test_a_counter_signature_does_not_fit_another_receipt():
    reservation = new_uuid()
    first = sign_both(CLIENT, PEER, make_receipt(CLIENT, PEER, reservation, 1))
    second = sign(CLIENT, make_receipt(CLIENT, PEER, reservation, 2))
    with pytest.raises(BadSignature):
        open_doubly_signed(msgspec.structs.replace(first, receipt=second))


def test_nobody_pays_itself():
    receipt = make_receipt(CLIENT, CLIENT, new_uuid())
    with pytest.raises(MalformedMessage, match="itself"):
        open_doubly_signed(sign_both(CLIENT, CLIENT, receipt))


@pytest.mark.parametrize("position", range(0, 200, 17))
def test_a_flipped_bit_is_noticed(position: int):
    signed = sign(CLIENT, make_receipt(CLIENT, PEER, new_uuid()))
    payload = bytearray(signed.payload)
    payload[position] ^= 1
    with pytest.raises(BadSignature):
        open_receipt(msgspec.structs.replace(signed, payload=bytes(payload)))


def test_a_huge_payload_is_refused_before_its_signature_is_looked_at():
    signed: Signed[Receipt] = Signed(signer=CLIENT.peer_id, payload=b"x" * 769, signature=b"s" * 64)
    with pytest.raises(MessageTooLarge):
        open_receipt(signed)


def test_the_largest_question_and_answer_fit_their_caps():
    largest = make_receipt(
        CLIENT, PEER, new_uuid(), 2**31, job="j" * 64, round=2**31, flops=2**63 - 1, samples=2**63 - 1, issued=2**63 - 1
    )
    full = Receipts(receipts=[accept(PEER, sign(CLIENT, largest))] * MOST_RECEIPTS)
    assert len(encode(full)) <= RECEIPTS_LIMIT
    answer = ReceiptsKept(new=0, known=0, reasons={str(index): "r" * 300 for index in range(MOST_RECEIPTS)})
    assert len(encode(answer)) <= RECEIPTS_KEPT_LIMIT


def test_reasons_travel_by_index():
    kept = ReceiptsKept(new=1, known=0, reasons={"1": "another client", "12": "unknown"})
    assert decode_as(encode(kept), ReceiptsKept, RECEIPTS_KEPT_LIMIT).refused == {1: "another client", 12: "unknown"}


@pytest.mark.parametrize("index", ["-1", "1\n", "1000", "x", ""])
def test_an_index_that_is_no_number_is_refused(index: str):
    with pytest.raises(MalformedMessage):
        decode_as(encode(ReceiptsKept(new=0, known=0, reasons={index: "no"})), ReceiptsKept, RECEIPTS_KEPT_LIMIT)
