"""Results that a stranger made up: each is refused by name, and before anything of the size that it claims is made."""

from __future__ import annotations

import contextlib
import struct
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.values.bounds import ResultBounds
from axonp2p.values.forms import Form
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value


def extension(form: int, body: bytes) -> bytes:
    packed: bytes = msgpack.packb(msgpack.ExtType(form, body))
    return packed


def array(dtype: Any, shape: Any, content: Any) -> bytes:
    return extension(Form.ARRAY, msgpack.packb([dtype, shape, content]))


def peak_of(act: Callable[[], Any]) -> int:
    """Bytes that were in use at most."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def tuples_of_one_hash(axes: int) -> list[tuple[int, ...]]:
    """-1 and -2 have the same hash, so all tuples of them have."""
    return [tuple(-1 - (number >> axis & 1) for axis in range(axes)) for number in range(2**axes)]


def packed_dict_of_one_hash() -> bytes:
    keys = [extension(Form.TUPLE, msgpack.packb(list(key))) for key in tuples_of_one_hash(12)]
    return b"\xde" + struct.pack(">H", len(keys)) + b"".join(key + b"\xc0" for key in keys)


ONE = array("f8", [1], b"\0" * 8)
HOSTILE = {
    "nothing": (b"", "bytes follow"),
    "an object array": (array("O", [1], b"\0" * 8), "dtype 'O'"),
    "an object array by its other name": (array("|O8", [1], b"\0" * 8), "dtype '|O8'"),
    "records": (array("f8,f8", [1], b"\0" * 16), "dtype 'f8,f8'"),
    "a dtype of dtypes": (array("(9999,9999)f8", [1], b"\0" * 8), "dtype"),
    "big endian": (array(">f8", [1], b"\0" * 8), "dtype '>f8'"),
    "another name of a dtype": (array("m8[1D]", [1], b"\0" * 8), "which is written"),
    "10^9 elements": (array("f8", [10**9], b""), r"shape \(1000000000\)"),
    "10^9 elements of nothing": (array("S0", [10**9], b""), "dtype 'S0'"),
    "10^9 rows of nothing": (array("f8", [10**9, 0], b""), "without elements"),
    "lengths whose product overflows": (array("f8", [2**32, 2**32], b""), "in 0 bytes"),
    "a product of lengths that wraps to 8 bytes": (array("f8", [2**61 + 1], b"\0" * 8), "in 8 bytes"),
    "a length below zero": (array("f8", [-1], b""), "no list of lengths"),
    "a length that is true": (array("f8", [True], b"\0" * 8), "no list of lengths"),
    "100 axes": (array("f8", [1] * 100, b"\0" * 8), "100 axes"),
    "truth values that are neither": (array("b1", [1], b"\2"), "truth values"),
    "no characters": (array("U1", [1], b"\xff" * 4), "no characters"),
    "another NaN": (array("f8", [1], b"\1" + b"\0" * 5 + b"\xf8\x7f"), "forms of NaN"),
    "200 levels": (b"\x91" * 200 + b"\xc0", "containers within each other"),
    "10,000 levels of dicts": (b"\x81\xc0" * 10_000, "containers within each other"),
    "200 levels of tuples": (extension(Form.TUPLE, b"\x91" * 200 + b"\xc0"), "containers within each other"),
    "a NaN as a key": (b"\x81\xcb" + bytes.fromhex("7ff8000000000000") + b"\xc0", "NaN"),
    "a NaN in a key": (
        b"\x81" + extension(Form.TUPLE, b"\x91\xcb" + bytes.fromhex("7ff8000000000000")) + b"\xc0",
        "NaN",
    ),
    "a list as a key": (b"\x81\x90\xc0", "key of type list"),
    "a key twice": (b"\x82\x01\xc0\x01\xc0", "key twice"),
    "a key twice by equality": (b"\x82\x01\xc0\xc3\xc0", "key twice"),
    "keys of one hash": (packed_dict_of_one_hash(), "same hash"),
    "a text of 2 GB": (b"\xdb" + struct.pack(">I", 2**31), "2,147,483,648 bytes follow"),
    "bytes of 4 GB": (b"\xc6\xff\xff\xff\xff", "bytes follow"),
    "a list of 2^32": (b"\xdd\xff\xff\xff\xff", "4,294,967,295 values follow"),
    "a dict of 2^32": (b"\xdf\xff\xff\xff\xff", "4,294,967,295 values follow"),
    "an extension of 4 GB": (b"\xc9\xff\xff\xff\xff\x01", "bytes follow"),
    "lists of lists that all say 2^16": (b"\xdc\xff\xff" * 30, "65,535 values follow"),
    "an integer of 5,000 bytes": (extension(Form.LONG_INT, b"\1" * 5000), "integer of 5,000 bytes"),
    "an integer that is not long": (extension(Form.LONG_INT, b"\1"), "longer than it has to be"),
    "a number in more bytes": (b"\xcd\x00\x01", "longer than it has to be"),
    "a number below zero in more bytes": (b"\xd1\xff\xff", "longer than it has to be"),
    "a length in more bytes": (b"\xd9\x01a", "longer than it has to be"),
    "a fixed extension in more bytes": (b"\xc7\x01\x01\x90", "longer than it has to be"),
    "a short float": (b"\xca\0\0\0\0", "unknown type 0xca"),
    "an unused type": (b"\xc1", "unknown type 0xc1"),
    "an unknown extension": (extension(99, b"abc"), "extension of unknown type 99"),
    "msgpack's own time": (msgpack.packb(msgpack.Timestamp(1)), "extension of unknown type 255"),
    "bytes behind it": (b"\xc0\xc0", "1 bytes behind"),
    "bytes behind a tuple": (extension(Form.TUPLE, b"\x90\xc0\xc0"), "bytes behind"),
    "a tuple that ends outside itself": (b"\x92\xd4\x01\x91\xc0", "values follow"),
    "a set that is not sorted": (extension(Form.SET, b"\x92\x02\x01"), "not sorted"),
    "a set with an element twice": (extension(Form.SET, b"\x92\x01\xc3"), "twice"),
    "a set of lists": (extension(Form.SET, b"\x91\x90"), "key of type list"),
    "text that is none": (b"\xa1\xff", "no UTF-8"),
    "half a character": (b"\xa3\xed\xa0\x80", "no UTF-8"),
    "a date that is none": (extension(Form.DATE, b"2026-13-01"), "is none"),
    "a date written otherwise": (extension(Form.DATE, b"20260101"), "written in another way"),
    "a time span that is none": (extension(Form.TIMEDELTA, msgpack.packb([10**12, 0, 0])), "is none"),
    "a time span of floats": (extension(Form.TIMEDELTA, msgpack.packb([1.0, 0, 0])), "written in another way"),
    "a masked array of lists": (extension(Form.MASKED, b"\x93\x90\xc0\x90"), "something else than arrays"),
    "another mask": (
        extension(Form.MASKED, b"\x93" + ONE + array("b1", [2], b"\0\0") + array("f8", [], b"\0" * 8)),
        "another shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_by_name_and_takes_no_memory(name: str) -> None:
    data, told = HOSTILE[name]
    unpack_value(b"\xc0")  # what is imported at the first call is not counted

    def refused() -> None:
        with pytest.raises((MalformedMessage, MessageTooLarge), match=told):
            unpack_value(data)

    began = time.process_time()
    assert peak_of(refused) < 400_000 + 40 * len(data)
    assert time.process_time() - began < 20  # keys of one hash, compared with each other, would take hours


@pytest.mark.parametrize(
    ("data", "most"),
    [(b"\x90", 100), (b"\x80", 100), (b"\xd4\x02\x90", 100), (b"\x81\xc0\xc0", 100), (b"\x92\x01\x02", 50)],
    ids=["lists", "dicts", "sets", "dicts of one", "pairs"],
)
def test_small_containers_take_a_small_multiple_of_their_bytes(data: bytes, most: int) -> None:
    packed = b"\xdc" + struct.pack(">H", 10_000) + data * 10_000
    unpack_value(packed)
    assert peak_of(lambda: unpack_value(packed)) < most * len(packed)


def test_a_value_is_bounded_in_bytes_and_items() -> None:
    with pytest.raises(MessageTooLarge, match=r"at most 64\.0 MB"):
        unpack_value(bytes(64_000_001))
    with pytest.raises(MessageTooLarge, match="more than 1,000 values"):
        unpack_value(pack_value([0.5] * 1001), ResultBounds(most_items=1000))
    with pytest.raises(MessageTooLarge, match="more than 1,000 values"):
        unpack_value(pack_value([[]] * 300), ResultBounds(most_items=1000))


def test_an_array_takes_its_own_size_once() -> None:
    packed = array("f8", [10**6], b"\0" * 8 * 10**6)
    unpack_value(packed)
    assert peak_of(lambda: unpack_value(packed)) < 1.3 * len(packed)


@settings(deadline=None, max_examples=120)
@given(st.lists(st.sampled_from([*(data for data, _ in HOSTILE.values()), b"\x93", b"\x82", b"\xc0", b"\xa1a"])))
@example([b"\x82", b"\x91", b"\xc0"])
def test_hostile_parts_in_any_order_raise_nothing_else(parts: list[bytes]) -> None:
    for data in (b"".join(parts), extension(Form.TUPLE, b"".join(parts)), extension(Form.ARRAY, b"".join(parts))):
        with contextlib.suppress(MalformedMessage, MessageTooLarge):
            unpack_value(data[:5000])
