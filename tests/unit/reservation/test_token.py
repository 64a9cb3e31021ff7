from __future__ import annotations

import msgspec
import pytest

from axonp2p.errors import BadSignature, MalformedMessage, MessageTooLarge, TokenRefused
from axonp2p.reservation.reserving import new_uuid
from axonp2p.reservation.token import (
    CLOCK_TOLERANCE_S,
    LONGEST_S,
    MOST_PEERS,
    ReserveRequest,
    Token,
    TokenHolder,
    check_token,
)
from axonp2p.wire.codec import decode_as, encode
from axonp2p.wire.envelope import Signed, sign
from tests.fakes import NOW, key_of, make_request

ISSUER, CLIENT, PEER, OTHER = key_of("issuer"), key_of("client"), key_of("peer"), key_of("other")


def make_token(**changes) -> Token:
    usual = {
        "uuid": new_uuid(),
        "issuer": ISSUER.peer_id,
        "client": CLIENT.peer_id,
        "client_address": "192.0.2.7",
        "peers": [PEER.peer_id],
        "kinds": ["train"],
        "not_before": int(NOW),
        "expires": int(NOW) + 60,
    }
    return Token(**(usual | changes))


def check(token: Token | Signed[Token], caller: TokenHolder | None = None, **changes) -> Token:
    signed = token if isinstance(token, Signed) else sign(ISSUER, token)
    usual = {"peer": PEER.peer_id, "trusted_issuers": frozenset([ISSUER.peer_id]), "kind": "train", "now": NOW}
    return check_token(signed, caller or TokenHolder(CLIENT.peer_id, "192.0.2.7"), **(usual | changes))


def test_a_valid_token_opens_the_door():
    token = make_token()
    assert check(token) == token


def test_an_issuer_that_this_peer_does_not_trust():
    with pytest.raises(TokenRefused, match="none of this peer's trackers"):
        check(sign(OTHER, make_token(issuer=OTHER.peer_id)))


def test_a_token_that_names_another_issuer_than_its_signer():
    with pytest.raises(TokenRefused, match="another issuer"):
        check(make_token(issuer=OTHER.peer_id))


def test_a_token_for_longer_than_a_reservation_may_last():
    last = int(NOW) + LONGEST_S
    check(make_token(expires=last))
    with pytest.raises(TokenRefused, match="valid for more than 86400 s"):
        check(make_token(expires=last + CLOCK_TOLERANCE_S + 1))
    with pytest.raises(TokenRefused, match="valid for more than"):
        check(make_token(not_before=0, expires=2**35))
    with pytest.raises(TokenRefused, match="valid for longer than"):
        check(make_token(expires=last + 1))
    with pytest.raises(MalformedMessage):
        check(make_token(not_before=-(2**62), expires=2**62))


def test_not_yet():
    token = make_token(not_before=int(NOW) + 100, expires=int(NOW) + 160)
    with pytest.raises(TokenRefused, match=r"not valid before .*, in 100 s"):
        check(token)
    assert check(token, now=NOW + 100 - CLOCK_TOLERANCE_S) == token


def test_no_more():
    token = make_token()
    assert check(token, now=NOW + 59) == token
    with pytest.raises(TokenRefused, match="expired 5 s ago"):
        check(token, now=NOW + 65)
    with pytest.raises(TokenRefused, match="expired"):
        check(token, now=NOW + 60)


def test_for_another_peer():
    with pytest.raises(TokenRefused, match="for other peers"):
        check(make_token(peers=[OTHER.peer_id]))


def test_for_another_kind_of_work():
    with pytest.raises(TokenRefused, match="for infer, bench jobs, not train"):
        check(make_token(kinds=["infer", "bench"]))


def test_used_by_another_key():
    with pytest.raises(TokenRefused, match="belongs to another key"):
        check(make_token(), TokenHolder(OTHER.peer_id, "192.0.2.7"))


def test_used_from_another_address():
    with pytest.raises(TokenRefused, match=r"was given to 192\.0\.2\.7, the caller is at 192\.0\.2\.8"):
        check(make_token(), TokenHolder(CLIENT.peer_id, "192.0.2.8"))


@pytest.mark.parametrize(
    ("given", "called_from"),
    [
        ("192.0.2.7", "::ffff:192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7", "2001:db8::1"),
        ("2001:db8::1", "2001:DB8:0::1"),
    ],
)
def test_the_same_address_in_other_words_and_another_family_pass(given: str, called_from: str):
    token = make_token(client_address=given)
    assert check(token, TokenHolder(CLIENT.peer_id, called_from)) == token


def test_what_is_no_address_is_another_address():
    with pytest.raises(TokenRefused, match="was given to"):
        check(make_token(client_address="somewhere"))


def test_a_volunteer_may_let_clients_move():
    token = make_token()
    assert check(token, TokenHolder(CLIENT.peer_id, "192.0.2.8"), check_address=False) == token


@pytest.mark.parametrize("position", range(0, 230, 23))
def test_a_flipped_bit_anywhere(position: int):
    signed = sign(ISSUER, make_token())
    payload = bytearray(signed.payload)
    payload[position] ^= 0x10
    with pytest.raises(BadSignature):
        check(msgspec.structs.replace(signed, payload=bytes(payload)))


def test_a_flipped_bit_in_the_signature():
    signed = sign(ISSUER, make_token())
    broken = bytes([signed.signature[0] ^ 1]) + signed.signature[1:]
    with pytest.raises(BadSignature):
        check(msgspec.structs.replace(signed, signature=broken))


def test_a_token_over_its_cap():
    signed: Signed[Token] = Signed(signer=ISSUER.peer_id, payload=b"x" * (Token.LIMIT + 1), signature=b"s" * 64)
    with pytest.raises(MessageTooLarge):
        check(signed)


def test_the_largest_token_and_request_fit_their_caps():
    peers = [key_of(f"peer {number}").peer_id for number in range(MOST_PEERS)]
    kinds = [f"{number}".ljust(32, "k") for number in range(8)]
    token = make_token(peers=peers, kinds=kinds, client_address="x" * 45)
    assert len(sign(ISSUER, token).payload) <= Token.LIMIT
    request = make_request(peers, kinds=kinds, seconds=LONGEST_S)
    assert len(sign(CLIENT, request).payload) <= ReserveRequest.LIMIT


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "no"},
        {"uuid": new_uuid().upper()},
        {"uuid": new_uuid() + "\n"},
        {"uuid": "00000000-0000-1000-8000-000000000000"},
        {"peers": []},
        {"peers": [PEER.peer_id] * (MOST_PEERS + 1)},
        {"kinds": []},
        {"seconds": 0},
        {"seconds": LONGEST_S + 1},
    ],
)
def test_a_request_with_a_wrong_field_is_malformed(change):
    with pytest.raises(MalformedMessage):
        decode_as(encode(make_request([PEER.peer_id], **change)), ReserveRequest, ReserveRequest.LIMIT)
