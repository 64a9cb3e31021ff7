"""Arrays of numpy as a dtype, a shape and bytes: C order, little endian, one form of NaN. Never objects.

numpy is imported where a value needs it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from axonp2p.errors import MalformedMessage
from axonp2p.values.bounds import LONGEST_DTYPE, MOST_AXES

Array = Any
"""A `numpy.ndarray`."""
_DTYPE = re.compile(
    r"b1|[iu][1248]|f[248]|c8|c16|[SU][1-9]\d{0,8}"
    r"|[mM]8(\[([1-9]\d{0,3})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_LAST_CHARACTER = 0x10FFFF


class NoArrayForm(Exception):
    """An array that has no form here; the text says why, as the end of "an array of ..."."""


def array_parts(array: Array) -> tuple[str, tuple[int, ...], Array]:
    """Its dtype, its shape, and its bytes as a flat array of uint8: a view of it where it has this form already.

    Raises `NoArrayForm`.
    """
    import numpy as np

    kind = array.dtype.kind
    if array.dtype.names is not None or kind == "V":
        raise NoArrayForm("records (a structured dtype)")
    if kind == "O":
        raise NoArrayForm("Python objects (dtype object)")
    if kind in "SU" and array.dtype.itemsize == 0:
        array = array.astype(f"{kind}1")
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    text = plain.dtype.str[1:]
    if _DTYPE.fullmatch(text) is None or len(text) > LONGEST_DTYPE or (kind == "U" and _beyond_unicode(plain)):
        raise NoArrayForm(f"dtype {array.dtype}")
    if kind in "fc" and (odd := _odd_nans(plain)) is not None:
        plain = plain.copy()
        numbers = _numbers_of(plain)
        numbers[odd] = np.nan
    return text, array.shape, plain.reshape(-1).view(np.uint8)


def array_of(text: str, shape: Sequence[int], data: memoryview, most_empty: int) -> Array:
    """The array, in memory of its own, once its bytes are as many as its shape says. Raises `MalformedMessage`.

    `most_empty`: an array without elements may have axes whose lengths multiply to this.
    """
    import numpy as np

    if len(text) > LONGEST_DTYPE or _DTYPE.fullmatch(text) is None:
        raise MalformedMessage(f"an array of dtype {text[:LONGEST_DTYPE]!r}")
    if len(shape) > MOST_AXES:
        raise MalformedMessage(f"an array of {len(shape)} axes; at most {MOST_AXES}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise MalformedMessage("an array whose shape is no list of lengths")
    itemsize = _itemsize(text)
    if math.prod(shape) * itemsize != len(data):
        raise MalformedMessage(f"an array of shape {_shown(shape)} and dtype {text} in {len(data)} bytes")
    if not data and math.prod(length for length in shape if length) > most_empty:
        raise MalformedMessage(f"an array without elements, of shape {_shown(shape)}")
    dtype = np.dtype(text).newbyteorder("<")
    if dtype.str[1:] != text:  # such as M8[7D], which is M8[W]
        raise MalformedMessage(f"an array of dtype {text!r}, which is written {dtype.str[1:]!r}")
    try:
        array = np.frombuffer(data, dtype).reshape(shape) if data else np.empty(shape, dtype)
    except ValueError as error:  # lengths whose product numpy cannot count
        raise MalformedMessage(f"an array of shape {_shown(shape)}") from error
    if array.dtype.kind == "b" and data and np.frombuffer(data, np.uint8).max() > 1:
        raise MalformedMessage("an array of truth values that has others")
    if array.dtype.kind == "U" and _beyond_unicode(array):
        raise MalformedMessage("an array of text that has no characters")
    if array.dtype.kind in "fc" and _odd_nans(array) is not None:
        raise MalformedMessage("an array with several forms of NaN")
    return array.astype(dtype.newbyteorder("="))


def _shown(shape: Sequence[int]) -> str:
    return f"({', '.join(str(length) if length < 10**12 else 'very long' for length in shape)})"


def _itemsize(text: str) -> int:
    if text[0] in "mM":
        return 8
    size = int(text[1:])
    return 4 * size if text[0] == "U" else size


def _numbers_of(array: Array) -> Array:
    """Its floats, flat: of complex numbers, both parts. A view."""
    flat = array.reshape(-1)
    return flat.view(f"<f{flat.dtype.itemsize // 2}") if flat.dtype.kind == "c" else flat


def _odd_nans(array: Array) -> Array | None:
    """Where its NaNs have other bits than numpy's own; None: nowhere."""
    import numpy as np

    numbers = _numbers_of(array)
    nans = np.isnan(numbers)
    if not nans.any():
        return None
    bits = f"<u{numbers.dtype.itemsize}"
    usual = np.array(np.nan, numbers.dtype).view(bits)
    odd: Array = nans & (numbers.view(bits) != usual)
    return odd if odd.any() else None


def _beyond_unicode(array: Array) -> bool:
    return bool(array.size and array.reshape(-1).view("<u4").max() > _LAST_CHARACTER)
