"""Extensions of the form, and the rules for keys of dicts and elements of sets. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from axonp2p.values.bounds import MOST_EQUAL_HASHES


class Form(IntEnum):
    """The meaning of the code of an extension, and its body."""

    TUPLE = 1
    """A packed list."""
    SET = 2
    """A packed list, sorted by the bytes of its elements."""
    FROZENSET = 3
    """The same."""
    LONG_INT = 4
    """An integer of more than 64 bits: big endian, two's complement, as short as can be."""
    COMPLEX = 5
    """Two float64, big endian."""
    DATE = 6
    """Text as `isoformat` writes it, and so the next two."""
    TIME = 7
    DATETIME = 8
    TIMEDELTA = 9
    """A packed list of days, seconds and microseconds."""
    SCALAR = 10
    """Of numpy: a packed list of dtype and bytes."""
    ARRAY = 11
    """Of numpy: a packed list of dtype, shape and bytes."""
    MASKED = 12
    """Of numpy: a packed list of the array, its mask (or nil), and the scalar that fills it."""


NAN = bytes.fromhex("7ff8000000000000")
"""The bits of every float64 that is not a number."""
DATE_KINDS: dict[type, Form] = {
    datetime.date: Form.DATE,
    datetime.time: Form.TIME,
    datetime.datetime: Form.DATETIME,
}
_KEYS = {
    *(type(None), bool, int, float, complex, str, bytes, frozenset),
    *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta),
}
_KEYED = {str, bytes}
"""Types whose hashes nobody can choose: Python mixes a secret into them."""


def mistake_of_keys(keys: Sequence[Any]) -> str:
    """The fault of these keys of a dict or elements of a set; empty: none."""
    kinds = set(map(type, keys))
    if kinds <= _KEYED:
        return ""
    for key in keys:
        if mistake := _mistake_of_key(key):
            return mistake
    if len(keys) > MOST_EQUAL_HASHES:
        hashes = sorted(map(hash, keys))
        if any(one == other for one, other in zip(hashes, hashes[MOST_EQUAL_HASHES:], strict=False)):
            return f"more than {MOST_EQUAL_HASHES} keys that have the same hash"
    return ""


def _mistake_of_key(key: Any) -> str:
    if type(key) is tuple:
        return next((mistake for part in key if (mistake := _mistake_of_key(part))), "")
    if type(key) in _KEYS or (type(key).__module__ == "numpy" and _is_scalar(key)):
        return "" if key == key else "a key that is not a number (NaN)"
    return f"a key of type {type(key).__name__}"


def _is_scalar(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.generic) and value.dtype.kind in "biufSU"
