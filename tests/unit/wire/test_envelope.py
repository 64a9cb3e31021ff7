"""Envelopes: size, then signature, then content, and never a signature for another purpose."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import AxonError, BadSignature, MalformedMessage, MessageTooLarge, PeerMisbehaved
from axonp2p.identity.keys import PrivateKey
from axonp2p.wire.codec import encode
from axonp2p.wire.envelope import (
    ENVELOPE_OVERHEAD,
    Signable,
    Signed,
    decode_signed,
    encode_signed,
    open_signed,
    sign,
)

KEY, OTHER = PrivateKey(bytes([1]) * 32), PrivateKey(bytes([2]) * 32)


class Promise(Signable, frozen=True):
    PURPOSE: ClassVar[str] = "axon/promise/1"
    LIMIT: ClassVar[int] = 100

    text: Annotated[str, msgspec.Meta(max_length=300)]


class Threat(Signable, frozen=True):
    PURPOSE: ClassVar[str] = "axon/threat/1"
    LIMIT: ClassVar[int] = 100

    text: str


PROMISE = Promise(text="I will")


def test_what_was_signed_is_opened_and_its_signer_known() -> None:
    message, envelope = decode_signed(encode_signed(KEY, PROMISE), Promise)
    assert message == PROMISE
    assert envelope.signer == KEY.peer_id
    assert open_signed(envelope, Promise) == PROMISE


def test_a_signature_does_not_serve_another_purpose() -> None:
    with pytest.raises(BadSignature, match="axon/threat/1"):
        decode_signed(encode_signed(KEY, PROMISE), Threat)


@pytest.mark.parametrize(
    "changes",
    [
        {"signer": OTHER.peer_id},
        {"payload": encode(Promise(text="I won't"))},
        {"signature": bytes(64)},
        {"signature": OTHER.sign(Promise.PURPOSE, encode(PROMISE))},
    ],
)
def test_a_forged_envelope_is_a_bad_signature(changes: dict[str, object]) -> None:
    with pytest.raises(BadSignature):
        open_signed(msgspec.structs.replace(sign(KEY, PROMISE), **changes), Promise)


def test_size_comes_before_signature_and_signature_before_content() -> None:
    large = Signed[Promise](signer=KEY.peer_id, payload=bytes(Promise.LIMIT + 1), signature=bytes(64))
    with pytest.raises(MessageTooLarge):
        open_signed(large, Promise)
    with pytest.raises(MessageTooLarge):
        decode_signed(bytes(Promise.LIMIT + ENVELOPE_OVERHEAD + 1), Promise)
    unsigned = Signed[Promise](signer=KEY.peer_id, payload=b"rubbish", signature=bytes(64))
    with pytest.raises(BadSignature):
        open_signed(unsigned, Promise)
    rubbish = Signed[Promise](signer=KEY.peer_id, payload=b"\xc1", signature=KEY.sign(Promise.PURPOSE, b"\xc1"))
    with pytest.raises(MalformedMessage):
        open_signed(rubbish, Promise)


def test_the_overhead_of_an_envelope_is_enough_for_the_largest_message() -> None:
    text = "x" * (Promise.LIMIT - len(encode(Promise(text=""))) - 1)
    assert len(encode(Promise(text=text))) == Promise.LIMIT
    assert decode_signed(encode_signed(KEY, Promise(text=text)), Promise)[0].text == text


@pytest.mark.parametrize("size", [0, 63, 65])
def test_a_signature_of_another_length_is_not_even_tried(size: int) -> None:
    envelope = {"signer": KEY.peer_id, "payload": encode(PROMISE), "signature": bytes(size)}
    with pytest.raises(MalformedMessage):
        decode_signed(msgspec.msgpack.encode(envelope), Promise)


@given(st.binary(max_size=400))
def test_random_bytes_raise_our_errors_only(data: bytes) -> None:
    with pytest.raises(AxonError):
        decode_signed(data, Promise)


@given(st.data())
def test_one_changed_byte_never_passes(data: st.DataObject) -> None:
    packed = bytearray(encode_signed(KEY, PROMISE))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(PeerMisbehaved):
        decode_signed(bytes(packed), Promise)
