"""Frames: header and payload in one piece, taken apart without a copy, bounded at both ends."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wire.codec import Message, decode_as
from axonp2p.wire.frame import FRAME_LIMIT, HEADER_LIMIT, PAYLOAD_LIMIT, pack_frame, split_frame


class Note(Message, frozen=True):
    text: str


@given(st.text(st.characters(codec="utf-8"), max_size=50), st.binary(max_size=500))
def test_header_and_payload_come_apart_as_they_were(text: str, payload: bytes) -> None:
    packed = pack_frame(Note(text=text), memoryview(payload))
    frame = split_frame(packed)
    assert decode_as(frame.header, Note, HEADER_LIMIT) == Note(text=text)
    assert frame.payload == payload
    assert frame.payload.obj is packed


def test_the_largest_frame_fits_and_one_byte_more_does_not() -> None:
    largest = pack_frame(Note(text="x"), bytes(PAYLOAD_LIMIT))
    assert len(split_frame(largest).payload) == PAYLOAD_LIMIT
    assert len(largest) <= FRAME_LIMIT
    with pytest.raises(MessageTooLarge):
        split_frame(largest + b"\0")
    with pytest.raises(MessageTooLarge):
        pack_frame(Note(text="x"), bytes(PAYLOAD_LIMIT + 1))
    with pytest.raises(MessageTooLarge):
        pack_frame(Note(text="x" * HEADER_LIMIT))


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\1", struct.pack(">I", HEADER_LIMIT) + bytes(10)])
def test_a_frame_that_breaks_off_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        split_frame(data)


@pytest.mark.parametrize("length", [HEADER_LIMIT + 1, 2**31, 2**32 - 1])
def test_a_header_that_claims_too_much_is_refused_at_once(length: int) -> None:
    with pytest.raises(MessageTooLarge):
        split_frame(struct.pack(">I", length))


@given(st.binary(max_size=100))
def test_random_bytes_split_or_raise_our_errors(data: bytes) -> None:
    try:
        frame = split_frame(data)
    except (MalformedMessage, MessageTooLarge):
        return
    assert 4 + len(frame.header) + len(frame.payload) == len(data)
