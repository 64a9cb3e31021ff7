from __future__ import annotations

from contextlib import nullcontext

import msgspec
import pytest

from axonp2p.errors import BadSignature, Busy, Refused, TooOften
from axonp2p.jobs.messages import TakeLease
from axonp2p.reservation.token import Token, TokenHolder
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import open_signed, sign
from axonp2p.wire.schema import SCHEMAS
from peer_daemon.lending.leases import Leases
from peer_daemon.lending.lending import Lending
from peer_daemon.lending.own_tokens import A_MINUTE, A_MINUTE_FOR_ONE, OwnTokens
from tests.fakes import NOW, key_of, make_offer, make_request

PEER, CLIENT, STRANGER = key_of("peer"), key_of("client"), key_of("stranger")
HERE = "192.0.2.7"


def make_tokens(**changes) -> OwnTokens:
    return OwnTokens(PEER, Lending(make_offer(**changes)))


def wish(**changes):
    return sign(CLIENT, make_request([PEER.peer_id], **changes))


def test_a_token_of_its_own_gives_a_lease():
    signed = make_tokens().issue(wish(), HERE, 1, NOW)
    token = open_signed(signed, Token)
    assert (token.issuer, token.client, token.client_address) == (PEER.peer_id, CLIENT.peer_id, HERE)
    assert (token.peers, token.expires) == ([PEER.peer_id], int(NOW) + 60)
    leases = Leases(PEER.peer_id, Lending(make_offer()), check_address=True)
    leases.trust(PEER.peer_id)
    ask = TakeLease(schema=SCHEMAS["train"], token=encode(signed), job="digits", kind="train", cores=1, memory_mb=256)
    lease = leases.take(ask, TokenHolder(CLIENT.peer_id, HERE), NOW)
    assert (lease.issuer, lease.token) == (PEER.peer_id, ask.token)


def test_the_same_wish_again_gets_the_same_token_also_when_no_slot_is_free():
    tokens, first = make_tokens(), make_request([PEER.peer_id])
    given_first = tokens.issue(sign(CLIENT, first), HERE, 1, NOW)
    again = msgspec.structs.replace(first, time=first.time + 5)
    assert tokens.issue(sign(CLIENT, again), HERE, 0, NOW + 5) == given_first
    with pytest.raises(Refused, match="another reservation"):
        tokens.issue(sign(CLIENT, msgspec.structs.replace(first, seconds=61)), HERE, 1, NOW)
    late = msgspec.structs.replace(first, time=first.time + 60)
    with pytest.raises(Refused, match="has ended"):
        tokens.issue(sign(CLIENT, late), HERE, 1, NOW + 60)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"time": int(NOW) - 31}, "31 s ago"),
        ({"time": int(NOW) + 40}, "40 s in the future"),
        ({"peers": [STRANGER.peer_id]}, "for itself alone"),
        ({"peers": [PEER.peer_id, STRANGER.peer_id]}, "for itself alone"),
        ({"kinds": ["train", "infer"]}, "infer"),
    ],
)
def test_a_wish_for_something_else_is_refused(changes, words):
    with pytest.raises(Refused, match=words):
        make_tokens().issue(wish(**changes), HERE, 1, NOW)


def test_no_token_when_it_takes_no_work_or_no_slot_is_free():
    with pytest.raises(Refused, match="no bubblewrap"):
        make_tokens(refuses="no bubblewrap").issue(wish(), HERE, 1, NOW)
    with pytest.raises(Busy, match="every slot"):
        make_tokens().issue(wish(), HERE, 0, NOW)


def test_a_wish_that_its_client_did_not_sign_is_refused():
    forged = msgspec.structs.replace(wish(), signer=STRANGER.peer_id)
    with pytest.raises(BadSignature):
        make_tokens().issue(forged, HERE, 1, NOW)


def wish_of(number: int, **changes):
    return sign(key_of(f"client {number}"), make_request([PEER.peer_id], **changes))


def test_who_asks_too_often_waits_and_others_do_not():
    tokens = make_tokens()
    for number in range(A_MINUTE_FOR_ONE):
        tokens.issue(wish_of(number), f"2001:db8::{number}", 1, NOW)
    with pytest.raises(TooOften):
        tokens.issue(wish_of(99), "2001:db8:0:ff::2", 1, NOW)
    tokens.issue(wish_of(99), "2001:db8:0:100::2", 1, NOW)
    tokens.issue(wish_of(99, time=int(NOW) + 60), "2001:db8::2", 1, NOW + 60)


def test_one_key_at_many_addresses_asks_too_often_as_well():
    tokens = make_tokens()
    for number in range(A_MINUTE_FOR_ONE):
        tokens.issue(wish(), f"192.0.2.{number}", 1, NOW)
    with pytest.raises(TooOften):
        tokens.issue(wish(), "192.0.2.99", 1, NOW)


def test_questions_that_nobody_signed_use_up_nothing():
    tokens, forged = make_tokens(), msgspec.structs.replace(wish(), signer=STRANGER.peer_id)
    for number in range(2 * A_MINUTE):
        with pytest.raises(BadSignature):
            tokens.issue(forged, f"192.0.2.{number % 3}", 1, NOW)
    tokens.issue(wish(), "192.0.2.1", 1, NOW)


def test_a_caller_whom_a_relay_names_by_any_text_is_one_source():
    tokens = make_tokens()
    tokens.issue(wish(), "no address", 1, NOW)


def test_all_together_get_so_many_a_minute(monkeypatch):
    monkeypatch.setattr("peer_daemon.lending.own_tokens.A_MINUTE", 30)
    tokens = make_tokens()
    for number in range(30):
        tokens.issue(wish_of(number), f"192.0.2.{number}", 1, NOW)
    with pytest.raises(Busy, match="too many"):
        tokens.issue(wish_of(99), "198.51.100.1", 1, NOW)


def test_what_one_asks_in_vain_is_not_counted_for_all(monkeypatch):
    monkeypatch.setattr("peer_daemon.lending.own_tokens.A_MINUTE", A_MINUTE_FOR_ONE + 1)
    tokens = make_tokens()
    for number in range(100):
        with nullcontext() if number < A_MINUTE_FOR_ONE else pytest.raises(TooOften):
            tokens.issue(wish(), HERE, 1, NOW)
    tokens.issue(wish_of(1), "198.51.100.1", 1, NOW)


def test_a_caller_whom_a_relay_names_uses_up_nothing_of_the_household_there():
    tokens = make_tokens()
    for number in range(A_MINUTE_FOR_ONE):
        tokens.issue(wish_of(number), HERE, 1, NOW, source=f"{HERE} through a relay")
    tokens.issue(wish_of(99), HERE, 1, NOW)


def test_what_it_remembers_is_bounded(monkeypatch):
    monkeypatch.setattr("peer_daemon.lending.own_tokens.MOST_REMEMBERED", 5)
    tokens = make_tokens()
    for number in range(12):
        tokens.issue(wish(), f"192.0.2.{number}", 1, NOW)
    assert len(tokens._given) == 5
