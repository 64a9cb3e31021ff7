"""The codec: what goes in comes out; whatever else a stranger sends is an error of ours."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.wire.codec import Message, decode, decode_as, encode
from axonp2p.wire.quantities import LATEST, Number, PlainMap, UnixTime

LIMIT = 4096


class Inner(Message, frozen=True):
    flag: bool = False


class First(Message, tag=True, frozen=True):
    number: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    text: Annotated[str, msgspec.Meta(max_length=100)]
    raw: bytes = b""
    values: list[float] = []
    inner: Inner | None = None


class Second(Message, tag=True, frozen=True):
    mapping: dict[str, int]


messages = st.one_of(
    st.builds(
        First,
        number=st.integers(0, 2**53),
        text=st.text(st.characters(codec="utf-8"), max_size=100),
        raw=st.binary(max_size=100),
        values=st.lists(st.floats(allow_nan=False), max_size=10),
        inner=st.none() | st.builds(Inner, flag=st.booleans()),
    ),
    st.builds(Second, mapping=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=9), st.integers(0, 9))),
)
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=9) | st.binary()
names = st.text(max_size=6) | st.integers(0, 9) | st.sampled_from(["type", "number", "text", "flag"])
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=20
)


@given(messages)
def test_what_goes_in_comes_out(message: Message) -> None:
    assert decode(encode(message), First | Second, LIMIT) == message
    assert decode_as(memoryview(encode(message)), type(message), LIMIT) == message


@given(st.binary(max_size=300))
def test_random_bytes_raise_our_errors_only(data: bytes) -> None:
    for kind in (First, Second, First | Second, Inner):
        with suppress(MalformedMessage):
            decode(data, kind, LIMIT)


@given(anything)
def test_any_msgpack_value_is_a_message_or_malformed(value: object) -> None:
    try:
        data = msgpack.packb(value)
    except (UnicodeEncodeError, ValueError):
        return
    for kind in (First, First | Second):
        with suppress(MalformedMessage):
            assert isinstance(decode(data, kind, LIMIT), Message)


@given(messages, st.data())
def test_a_message_with_one_byte_changed_is_a_message_or_malformed(message: Message, data: st.DataObject) -> None:
    packed = bytearray(encode(message))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(MalformedMessage):
        decode(bytes(packed), First | Second, LIMIT)


def test_size_is_checked_before_anything_else() -> None:
    packed = encode(Second(mapping={"a": 1}))
    assert decode_as(packed, Second, len(packed))
    with pytest.raises(MessageTooLarge, match=f"{len(packed)} bytes where at most {len(packed) - 1}"):
        decode_as(packed, Second, len(packed) - 1)
    with pytest.raises(MessageTooLarge):
        decode_as(bytes(LIMIT + 1), Second, LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        {"flag": True, "extra": 1},
        {"flag": 1},
        {"flag": "true"},
        {"flag": None},
        [True],
        True,
        {"flag": msgpack.ExtType(5, b"data")},
        {"flag": msgpack.Timestamp(1)},
        {b"flag": True},
    ],
)
def test_nothing_is_guessed(value: object) -> None:
    with pytest.raises(MalformedMessage):
        decode_as(msgpack.packb(value), Inner, LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        {"number": 1, "text": "x"},
        {"type": "Third", "number": 1, "text": "x"},
        {"type": "First", "number": 1},
        {"type": "First", "number": 1.0, "text": "x"},
        {"type": "First", "number": -1, "text": "x"},
        {"type": "First", "number": 2**64 - 1, "text": "x"},
        {"type": "First", "number": 1, "text": b"x"},
        {"type": "First", "number": 1, "text": "x" * 101},
        {"type": "First", "number": 1, "text": "x", "raw": "eA=="},
        {"type": "First", "number": 1, "text": "x", "values": {"0": 1.0}},
        {"type": "Second", "mapping": {"a": "1"}},
    ],
)
def test_fields_tags_types_and_bounds_are_checked(value: object) -> None:
    with pytest.raises(MalformedMessage):
        decode(msgpack.packb(value), First | Second, LIMIT)


@pytest.mark.parametrize(
    "data",
    {
        "deep lists": b"\x91" * 60_000,
        "deep maps": b"\x81\xa1a" * 20_000,
        "huge list": b"\xdd\xff\xff\xff\xff",
        "huge map": b"\xdf\xff\xff\xff\xff",
        "huge bytes": b"\xc6\xff\xff\xff\xff",
        "huge extension": b"\xc9\xff\xff\xff\xff\x05",
        "list as key": b"\x81\x90\x01",
        "number as key": b"\x81\x01\x01",
        "no utf-8": b"\xa2\xff\xfe",
        "no type": b"\xc1",
        "nothing": b"",
        "more than one": encode(Inner()) + b"\0",
    }.items(),
    ids=lambda item: item[0],
)
def test_hostile_msgpack_is_malformed(data: tuple[str, bytes]) -> None:
    with pytest.raises(MalformedMessage):
        decode_as(data[1], Inner, 64 * 1024)


def test_a_message_names_its_type_when_it_is_wrong_but_not_its_content() -> None:
    with pytest.raises(MalformedMessage, match="not a Inner") as caught:
        decode_as(msgpack.packb({"flag": "s3cret"}), Inner, LIMIT)
    assert "s3cret" not in str(caught.value)


def test_deep_nesting_is_malformed_also_where_anything_may_stand() -> None:
    class Free(Message, frozen=True):
        value: object

    for depth in (100, 500, 1000, 5000, 60_000):
        for opening in (b"\x91", b"\x81\xa1a"):
            data = b"\x81\xa5value" + opening * depth + b"\x01"
            with suppress(MalformedMessage):
                assert decode_as(data, Free, 256 * 1024)


def test_a_message_type_that_cannot_work_is_our_mistake_not_theirs() -> None:
    class Impossible(Message, frozen=True):
        number: Annotated[int, msgspec.Meta(lt=2**80)]

    with pytest.raises(ValueError, match="bounds"):
        decode_as(msgpack.packb({"number": 1}), Impossible, LIMIT)


class Listed(Message, frozen=True):
    values: Annotated[list[Number], msgspec.Meta(max_length=4)] = []
    when: UnixTime = 0
    unread: PlainMap | None = None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2e300])
def test_numbers_are_finite(value: float) -> None:
    for message in ({"values": [value]}, {"unread": {"a": value}}, {"unread": {"a": [value]}}):
        with pytest.raises(MalformedMessage):
            decode_as(msgpack.packb(message), Listed, LIMIT)


def test_times_are_in_every_calendar() -> None:
    assert datetime.fromtimestamp(LATEST, UTC).year == 3058
    with pytest.raises(MalformedMessage):
        decode_as(msgpack.packb({"when": LATEST + 1}), Listed, LIMIT)


def test_what_is_carried_unread_is_shallow_and_short() -> None:
    good: dict[str, object] = {"a": 1, "b": ["x", {"c": None}], "d": {"e": True}}
    assert decode_as(msgpack.packb({"unread": good}), Listed, LIMIT).unread == good
    for bad in ({"a": [[1]]}, {"a": {"b": {"c": 1}}}, {"a": list(range(65))}, {str(n): n for n in range(65)}):
        with pytest.raises(MalformedMessage):
            decode_as(msgpack.packb({"unread": bad}), Listed, LIMIT)


def test_lengths_are_compared_with_their_bounds_before_anything_is_made() -> None:
    many = b"\x81\xa6values" + b"\xdd\x00\x03\x00\x00" + b"\x90" * (3 * 2**16)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            decode_as(many, Listed, 2**20)
        assert tracemalloc.get_traced_memory()[1] < 2**16
    finally:
        tracemalloc.stop()
