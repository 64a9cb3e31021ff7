"""Plain values of any kind, for hypothesis."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

_ZONES = st.none() | st.integers(-23, 23).map(lambda hours: datetime.timezone(datetime.timedelta(hours=hours)))
_NUMBERS = st.integers() | st.integers(-(2**4000), 2**4000) | st.floats(allow_nan=False)
_DATES = (
    st.dates()
    | st.times(timezones=_ZONES).map(lambda time: time.replace(fold=0))
    | st.datetimes(timezones=_ZONES).map(lambda time: time.replace(fold=0))
    | st.timedeltas()
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT | st.binary() | _DATES,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
DTYPES = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="<")
    | hnp.floating_dtypes(endianness="<", sizes=(16, 32, 64))
    | hnp.complex_number_dtypes(endianness="<", sizes=(64, 128))
    | hnp.byte_string_dtypes()
    | hnp.datetime64_dtypes(endianness="<")
    | hnp.timedelta64_dtypes(endianness="<")
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ARRAYS = hnp.arrays(DTYPES, SHAPES) | hnp.arrays(
    "<U5", SHAPES, elements=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
)
SCALARS = ARRAYS.filter(lambda array: array.size > 0).map(lambda array: array.reshape(-1)[0])
VALUES = st.recursive(
    KEYS | st.complex_numbers(allow_nan=False) | st.just(float("nan")) | ARRAYS | SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are of the same types and equal, and NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape
        nan = one.dtype.kind in "fcmM"
        return bool(same and np.array_equal(one, other, equal_nan=nan))
    return bool(one == other or (one != one and other != other))
