"""Which values of two machines count as the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from axonp2p.kinds.map.opinions.agreement import close

_A = np.linspace(0, 1, 7)
_HUGE = complex(1.7e308, 1.7e308)
"""Its absolute value is no float."""

SAME = [
    (1, 1),
    ("a", "a"),
    (None, None),
    (0.1 + 0.2, 0.3),
    (math.nan, math.nan),
    (math.inf, math.inf),
    (complex(1, 2), complex(1, 2 + 1e-9)),
    (_HUGE, _HUGE),
    ([1.0, (2.0, b"x")], [1.0 + 1e-9, (2.0, b"x")]),
    ({"loss": 0.5, "n": 3}, {"n": 3, "loss": 0.5 + 1e-9}),
    (_A, _A * (1 + 1e-9)),
    (_A.astype(np.float32), _A.astype(np.float32) + np.float32(1e-7)),
    (np.float64(1.0), np.float64(1.0 + 1e-9)),
    (np.array(["2026-01-01", "NaT"], "M8[D]"), np.array(["2026-01-01", "NaT"], "M8[D]")),
    (np.ma.MaskedArray([1.0, 2.0], mask=[False, True]), np.ma.MaskedArray([1.0, 99.0], mask=[False, True])),
    (np.array([np.nan, 1.0]), np.array([np.nan, 1.0])),
]
OTHER = [
    (1, 2),
    (1, 1.0),
    (1, True),
    (0.5, 0.6),
    (math.inf, -math.inf),
    (math.inf, 1.0),
    (math.nan, 0.0),
    ([1.0], (1.0,)),
    ([1.0], [1.0, 2.0]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    (_A, _A + 1e-3),
    (_A, _A[:-1]),
    (_A, _A.astype(np.float32)),
    (_A, list(_A)),
    (np.array([1, 2]), np.array([1, 3])),
    (np.array(["a"]), np.array(["b"])),
    (np.ma.MaskedArray([1.0], mask=[False]), np.ma.MaskedArray([1.0], mask=[True])),
    (np.ma.MaskedArray([1.0], mask=[False]), np.array([1.0])),
    (np.array([math.inf]), np.array([1.0])),
    (_HUGE, complex(1, 1)),
    (_HUGE, _HUGE / 2),
    (_HUGE, -_HUGE),
    (np.array([_HUGE]), np.array([complex(1, 1)])),
    (np.array([_HUGE]), np.array([_HUGE / 2])),
    (np.array([3e38 + 3e38j], "complex64"), np.array([1 + 1j], "complex64")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one: object, other: object) -> None:
    assert close(one, other)
    assert close(other, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_not_the_same(one: object, other: object) -> None:
    assert not close(one, other)
    assert not close(other, one)
