"""The first words of a session, as a conversation: who says what, and who refuses why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import AxonError, BadSignature, Busy, MessageTooLarge, VersionMismatch
from axonp2p.identity.keys import PrivateKey
from axonp2p.transport.handshake import answer_challenge, check_hello, check_welcome, make_challenge
from axonp2p.transport.messages import HANDSHAKE_LIMIT, Challenge, Hello, Welcome, refusal_of
from axonp2p.wire.codec import PROTOCOL_VERSION, encode
from axonp2p.wire.envelope import encode_signed

LISTENER, CALLER = PrivateKey(bytes([1]) * 32), PrivateKey(bytes([2]) * 32)
NONCE, PIN = bytes([3]) * 32, bytes([4]) * 32


def answer(challenge: bytes) -> bytes:
    return answer_challenge(challenge, CALLER, peer=LISTENER.peer_id, fingerprint=PIN, called="peer otter")


def check(hello: bytes, **changes: object) -> str:
    usual = {"nonce": NONCE, "listener": LISTENER.peer_id, "fingerprints": [PIN]}
    return check_hello(hello, **(usual | changes))


def test_the_caller_proves_its_key() -> None:
    assert check(answer(make_challenge(LISTENER.peer_id, NONCE))) == CALLER.peer_id
    check_welcome(encode(Welcome()), "peer otter")


def test_a_proof_fits_no_other_moment_listener_or_certificate() -> None:
    hello = answer(make_challenge(LISTENER.peer_id, NONCE))
    with pytest.raises(BadSignature, match="another challenge"):
        check(hello, nonce=bytes(32))
    with pytest.raises(BadSignature, match="another listener"):
        check(hello, listener=CALLER.peer_id)
    with pytest.raises(BadSignature, match="another certificate"):
        check(hello, fingerprints=[bytes(32)])


def test_a_caller_signs_nothing_for_somebody_else() -> None:
    with pytest.raises(BadSignature, match="calls itself"):
        answer(make_challenge(CALLER.peer_id, NONCE))


def test_other_versions_are_named_on_both_sides() -> None:
    other = Challenge(protocol=PROTOCOL_VERSION + 1, nonce=NONCE, listener=LISTENER.peer_id)
    with pytest.raises(VersionMismatch, match=r"speaks protocol 3, this side speaks 2"):
        answer(encode(other))
    hello = Hello(protocol=7, nonce=NONCE, listener=LISTENER.peer_id, certificate=PIN)
    with pytest.raises(VersionMismatch, match=r"speaks protocol 7, this side speaks 2"):
        check(encode_signed(CALLER, hello))


def test_refusals_come_back_as_what_they_are() -> None:
    refusal = encode(refusal_of(Busy("too many callers")))
    with pytest.raises(Busy, match="peer otter: too many callers"):
        answer(refusal)
    with pytest.raises(Busy):
        check_welcome(refusal, "peer otter")


def test_long_messages_are_not_even_decoded() -> None:
    for take in (answer, check, lambda data: check_welcome(data, "peer otter")):
        with pytest.raises(MessageTooLarge):
            take(bytes(HANDSHAKE_LIMIT + 1))


@given(st.binary(max_size=200))
def test_rubbish_raises_only_our_errors(data: bytes) -> None:
    for take in (answer, check, lambda data: check_welcome(data, "peer otter")):
        with pytest.raises(AxonError):
            take(data)
