"""Whether two peers found the same: the same bytes, or numbers as near as honest machines come. Pure.

Values are canonical, so equal ones are equal bytes. Machines of different make still round differently: another order
of a sum, another instruction for a product. `"close"` allows for that as `torch.testing.assert_close` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute, by type: those of torch.testing."""


def close(one: object, other: object) -> bool:
    """Whether these plain values have the same shape, and numbers that lie near each other. NaN is near NaN."""
    if isinstance(one, float | complex) and type(one) is type(other):
        return _near(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and type(one) is type(other):
        return _all_close(one, other)
    if hasattr(one, "dtype") and hasattr(other, "dtype"):
        return _arrays_close(one, other)
    return type(one) is type(other) and one == other


def _all_close(ones: Sequence[object], others: Sequence[object]) -> bool:
    return len(ones) == len(others) and all(close(one, other) for one, other in zip(ones, others, strict=True))


def _near(one: complex, other: complex) -> bool:
    if one == other or (one != one and other != other):  # infinities, or NaN
        return True
    relative, absolute = TOLERANCES["float64"]
    difference, size = _size(one - other), _size(other)
    # Infinite is also the size of a complex number whose parts are finite: everything would be near it.
    return math.isfinite(difference) and math.isfinite(size) and difference <= absolute + relative * size


def _size(number: complex) -> float:
    """`abs` raises where it is no float."""
    return math.hypot(number.real, number.imag)


def _arrays_close(one: Any, other: Any) -> bool:
    import numpy as np

    if type(one) is not type(other) or one.dtype != other.dtype or one.shape != other.shape:
        return False
    if isinstance(one, np.ma.MaskedArray):
        if not np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other)):
            return False
        one, other = one.filled(0), other.filled(0)
    if one.dtype.name not in TOLERANCES:
        return _same(one, other)
    relative, absolute = TOLERANCES[one.dtype.name]
    if one.dtype.kind == "c":  # as in `_near`
        with np.errstate(over="ignore"):
            sizeless = np.isfinite(other) & np.isinf(np.abs(other))
        if np.any(sizeless & (one != other)):
            return False
    return bool(np.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True))


def _same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    import numpy as np

    # Dates have a NaN of their own.
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "mM"))
