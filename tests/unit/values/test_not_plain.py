"""What cannot travel back is named, with its place in the result and the way out."""

from __future__ import annotations

import collections
import datetime
import enum
import zoneinfo
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import LinearRegression

from axonp2p.errors import NotPlain
from axonp2p.values.bounds import ResultBounds
from axonp2p.values.packing import pack_value
from axonp2p.values.unpacking import unpack_value

Point = collections.namedtuple("Point", "x y")


class Colour(enum.IntEnum):
    RED = 1


REFUSED = {
    "an estimator": (LinearRegression(), "sklearn.linear_model._base.LinearRegression", "return arrays or numbers"),
    "a tensor": (torch.zeros(2), "torch.Tensor", "safetensors.torch.save"),
    "a sparse matrix": (scipy.sparse.eye(3, format="csr"), "scipy.sparse", "data, indices, indptr"),
    "objects": (np.array([{}, None]), "an array of Python objects", "return a list of its values"),
    "records": (np.zeros(2, "f8,i4"), "an array of records", "one array for each field"),
    "a wide float": (np.zeros(2, np.longdouble), "an array of dtype float128", "return a list"),
    "a matrix": (np.matrix([[1]]), "numpy.matrix", "numpy arrays"),
    "a generator": ((number for number in range(3)), "a value of type generator", r"return list\(...\)"),
    "a range": (range(3), "a value of type range", r"return list\(...\)"),
    "a namedtuple": (Point(1, 2), "Point", r"return tuple\(...\)"),
    "an enum": (Colour.RED, "Colour", r"return int\(...\)"),
    "a bytearray": (bytearray(b"a"), "bytearray", r"return bytes\(...\)"),
    "a function": (print, "a value of type builtin_function_or_method", "numpy arrays"),
    "a zone": (datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC")), "a time in UTC", "astimezone"),
    "half a character": ("\ud800", "a text that is no Unicode", "os.fsencode"),
    "an endless integer": (10**5000, "an integer of 2,077 bytes", "its text"),
    "a NaN as a key": ({float("nan"): 1}, r"a key that is not a number \(NaN\)", "as keys"),
    "an enum as a key": ({Colour.RED: 1}, "a key of type Colour", "as keys"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_named_with_its_place_and_the_way_out(name: str) -> None:
    value, told, fix = REFUSED[name]
    with pytest.raises(NotPlain, match=told) as refused:
        pack_value([1, {"found": (value,)}])
    assert "(result[1]['found'][0])" in refused.value.message
    with pytest.raises(NotPlain, match=fix):
        pack_value(value)


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotPlain, match="more than 32 containers within each other"):
        pack_value(endless)


def test_nothing_is_packed_that_would_be_refused() -> None:
    assert unpack_value(pack_value(_nested(32))) == _nested(32)
    with pytest.raises(NotPlain, match="within each other"):
        pack_value(_nested(33))
    few = ResultBounds(most_bytes=1000, most_items=100)
    for value in (b"a" * 1001, np.zeros(1000), "a" * 1001, [0] * 100, [[]] * 50, np.zeros((101, 0)), {0: [1.5] * 99}):
        with pytest.raises(NotPlain, match=r"the result is larger than|an array of shape"):
            pack_value(value, few)
    for value in (b"a" * 900, np.zeros(100), "a" * 900, [0] * 96, [[]] * 24, np.zeros((100, 0)), {0: [1.5] * 90}):
        assert pack_value(unpack_value(pack_value(value, few), few)) == pack_value(value)
