"""The description of a value that cannot travel, and the way out for each sort. Pure: it looks at types alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from axonp2p.errors import NotPlain

_PLAIN = "return None, numbers, text, bytes, lists, tuples, dicts, sets, dates, or numpy arrays of these"
_FIXES = {
    "torch": 'return safetensors.torch.save({"name": tensor}), and open it here with safetensors.torch.load',
    "pandas": 'return columns: {name: frame[name].to_numpy() for name in frame}, or frame.to_dict("list")',
    "scipy": "return its arrays: of a sparse matrix data, indices, indptr and shape",
    "polars": "return frame.to_dict(as_series=False)",
}
"""By the package that a type is of."""
_FITTED = {"predict", "predict_proba", "transform"}
"""Methods of what was fitted, whether it is a whole estimator or a part of one."""


def not_plain(value: Any, path: str = "") -> NotPlain:
    """The error for a value, which is at `path` in the result."""
    kind = type(value)
    place = f" (result{path})" if path else ""
    name = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
    return NotPlain(f"a value of type {name} cannot travel back{place}", cause=_cause(value), fix=_fix(value))


def _is_estimator(value: Any) -> bool:
    kind = type(value)
    has = {name for name in ("fit", "get_params", *_FITTED) if callable(getattr(kind, name, None))}
    return {"fit", "get_params"} <= has or bool(has & _FITTED)


def _cause(value: Any) -> str:
    if _is_estimator(value):
        return "a fitted estimator travels as a pickle, which is code; this computer opens none of a stranger's"
    return "results are data without code, so that this computer can open what a stranger sends"


def _fix(value: Any) -> str:
    if _is_estimator(value):
        return "fit inside the task and return arrays or numbers: predictions, scores, coefficients"
    kind = type(value)
    package = kind.__module__.split(".")[0]
    if package in _FIXES:
        return _FIXES[package]
    if isinstance(value, Iterator | range):
        return "return list(...) of it"
    for plain in (bool, int, float, str, bytes, tuple, list, dict, set, frozenset):
        if isinstance(value, plain):
            return f"return {plain.__name__}(...) of it"
    if isinstance(value, bytearray | memoryview):
        return "return bytes(...) of it"
    return _PLAIN
