from __future__ import annotations

import msgspec
import pytest

from axonp2p.errors import BadSignature, MalformedMessage, MessageTooLarge, StaleRow
from axonp2p.reservation.token import ReserveRequest
from axonp2p.table.records import LONGEST_LIFE_S, MOST_ROWS, ROWS_LIMIT, Row, Rows, open_row
from axonp2p.transport.messages import CLOCK_TOLERANCE_S
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_request, make_row

KEY, OTHER = key_of("peer"), key_of("other")


def test_a_peers_own_row_is_believed():
    row = make_row(KEY)
    assert open_row(sign(KEY, row), NOW) == row


def test_a_row_about_somebody_else_is_refused():
    with pytest.raises(BadSignature, match="was signed by"):
        open_row(sign(OTHER, make_row(KEY)), NOW)


def test_a_signature_by_another_key_in_the_peers_name_is_refused():
    forged = msgspec.structs.replace(sign(OTHER, make_row(KEY)), signer=KEY.peer_id)
    with pytest.raises(BadSignature):
        open_row(forged, NOW)


def test_what_was_signed_for_another_purpose_is_no_row():
    signed: Signed[ReserveRequest] = sign(KEY, make_request([OTHER.peer_id]))
    with pytest.raises(BadSignature):
        open_row(Signed(signer=signed.signer, payload=signed.payload, signature=signed.signature), NOW)


def test_an_expired_row_is_no_row_after_the_tolerance():
    row = make_row(KEY, expires=int(NOW))
    assert open_row(sign(KEY, row), NOW + CLOCK_TOLERANCE_S - 1) == row
    with pytest.raises(StaleRow, match="expired"):
        open_row(sign(KEY, row), NOW + CLOCK_TOLERANCE_S)


def test_a_row_may_not_promise_too_much():
    longest = make_row(KEY, expires=int(NOW) + LONGEST_LIFE_S)
    assert open_row(sign(KEY, longest), NOW) == longest
    too_long = make_row(KEY, expires=int(NOW) + LONGEST_LIFE_S + CLOCK_TOLERANCE_S + 1)
    with pytest.raises(MalformedMessage, match="at most"):
        open_row(sign(KEY, too_long), NOW)


def test_a_row_over_its_cap_is_refused_before_its_signature():
    signed: Signed[Row] = Signed(signer=KEY.peer_id, payload=b"x" * (Row.LIMIT + 1), signature=b"s" * 64)
    with pytest.raises(MessageTooLarge):
        open_row(signed, NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": "two\nlines"},
        {"name": "otter\n"},
        {"name": "x" * 33},
        {"addresses": ["no-port"]},
        {"addresses": ["127.0.0.1:1"] * 5},
        {"certificate": b"short"},
        {"sequence": -1},
        {"peer": KEY.peer_id + "\n"},
        {"capability": 7},
    ],
)
def test_a_row_with_a_wrong_field_is_malformed(change):
    with pytest.raises(MalformedMessage):
        open_row(sign(KEY, make_row(KEY, **change)), NOW)


def test_a_full_answer_fits_its_cap():
    row: Signed[Row] = Signed(signer=KEY.peer_id, payload=b"x" * Row.LIMIT, signature=b"s" * 64)
    answer = encode(Rows(rows=[row] * MOST_ROWS, fitting=10**6, alive=10**6))
    assert len(answer) <= ROWS_LIMIT
    assert len(decode_as(answer, Rows, ROWS_LIMIT).rows) == MOST_ROWS
