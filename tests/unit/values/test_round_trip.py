"""A value comes back as it was, and equal values are equal bytes."""

from __future__ import annotations

import datetime
import math
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.errors import MalformedMessage, MessageTooLarge
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value
from tests.unit.values.plain_values import VALUES, alike


@settings(deadline=None, max_examples=120)
@given(VALUES)
def test_any_plain_value_comes_back_as_it_was(value: Any) -> None:
    packed = pack_value(value)
    assert alike(unpack_value(packed), value)


@settings(deadline=None, max_examples=120)
@given(VALUES, st.data())
def test_bytes_that_are_read_are_the_one_form_of_their_value(value: Any, data: st.DataObject) -> None:
    packed = bytearray(pack_value(value))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = unpack_value(packed)
    except (MalformedMessage, MessageTooLarge):
        return
    assert pack_value(found) == packed


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused_by_name(data: bytes) -> None:
    try:
        found = unpack_value(data)
    except (MalformedMessage, MessageTooLarge):
        return
    assert pack_value(found) == data


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({3, 1, "b", "a"}, {"a", "b", 1, 3}, id="sets in any order"),
        pytest.param(np.arange(6).reshape(2, 3).T, np.array([[0, 3], [1, 4], [2, 5]]), id="order of memory"),
        pytest.param(np.arange(9)[::2], np.array([0, 2, 4, 6, 8]), id="steps"),
        pytest.param(np.arange(3, dtype=">i8"), np.arange(3, dtype="<i8"), id="order of bytes"),
        pytest.param(float("nan"), -float("nan"), id="NaN"),
        pytest.param([1.0, math.nan], [1.0, -math.nan], id="NaN in a list"),
        pytest.param(np.array([math.nan, 1]), np.array([-math.nan, 1]), id="NaN in an array"),
        pytest.param(np.array([complex(math.nan, 1)]), np.array([complex(-math.nan, 1)]), id="complex NaN"),
        pytest.param(np.array(["a"], "<U1"), np.array(["a"], ">U1"), id="text"),
        pytest.param(OrderedDict(a=1), {"a": 1}, id="OrderedDict"),
        pytest.param(Counter("aab"), {"a": 2, "b": 1}, id="Counter"),
        pytest.param(defaultdict(int, a=1), {"a": 1}, id="defaultdict"),
    ],
)
def test_equal_values_are_equal_bytes(one: Any, other: Any) -> None:
    assert pack_value(one) == pack_value(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((1, 1.0), (1, True), (0.0, -0.0), ([1], (1,)), ("a", b"a"), ({"a": 1, "b": 2}, {"b": 2, "a": 1})),
        *((1.0, np.float64(1.0)), (np.int32(1), np.int64(1)), (np.arange(4), np.arange(4).reshape(2, 2))),
        (np.array([0.0]), np.array([-0.0])),
    ],
)
def test_values_of_other_types_or_orders_are_other_bytes(one: Any, other: Any) -> None:
    assert pack_value(one) != pack_value(other)


def test_long_lists_of_one_type_are_as_short_ones() -> None:
    for values in ([0.5] * 100, list(range(-100, 100)), ["a"] * 100, [*([0.5] * 100), math.nan], [1, 2**70] * 20):
        packed = pack_value(values)
        assert alike(unpack_value(packed), values)
        assert packed == pack_value([values])[1:]


def test_arrays_can_be_written_to_and_share_no_memory_with_what_came() -> None:
    packed = bytearray(pack_value(np.zeros(3)))
    array = unpack_value(packed)
    packed[-1] = 1
    array[0] = 5
    assert array.tolist() == [5, 0, 0]


@pytest.mark.parametrize("mask", [np.ma.nomask, [True, False, True], [False] * 3])
@pytest.mark.parametrize("values", [[1, 2, 3], [1.5, math.nan, 3], ["a", "b", "c"]])
def test_masked_arrays_keep_mask_and_filling(mask: Any, values: list[Any]) -> None:
    array = np.ma.MaskedArray(values, mask=mask, fill_value=values[2])
    found = unpack_value(pack_value({"a": array}))["a"]
    assert type(found) is np.ma.MaskedArray
    assert found.fill_value == array.fill_value
    assert found.data.tolist()[2] == array.data.tolist()[2]
    assert np.ma.getmaskarray(found).tolist() == np.ma.getmaskarray(array).tolist()
    assert (found.mask is np.ma.nomask) == (array.mask is np.ma.nomask)


def test_times_without_a_zone_and_with_a_fixed_one() -> None:
    east = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    for value in (datetime.datetime(2026, 1, 2, 3, 4, 5, 6), datetime.datetime(2026, 1, 2, tzinfo=east)):
        found = unpack_value(pack_value(value))
        assert (found, found.utcoffset()) == (value, value.utcoffset())
