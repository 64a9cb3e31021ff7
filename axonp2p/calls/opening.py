"""Functions and arguments out of bytes, in the sandbox alone: what is in them is code."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

from axonp2p.calls.form import ARRAY_MARK, OpenBlob, read
from axonp2p.errors import MalformedMessage


def load_function(data: bytes | memoryview, open_blob: OpenBlob) -> Callable[..., Any]:
    """The function of `CallPacker.pack`. Raises `MalformedMessage`, `VersionMismatch`, and what its code raises."""
    function = _load(data, open_blob)
    if not callable(function):
        raise MalformedMessage("a packed function cannot be called")
    called: Callable[..., Any] = function
    return called


def load_call(data: bytes | memoryview, open_blob: OpenBlob) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `CallPacker.pack_call`; arrays of 16 KB and more are read-only, and not copied."""
    match _load(data, open_blob):
        case (tuple() as args, dict() as kwargs):
            return args, kwargs
    raise MalformedMessage("not the packed arguments of a call")


def _load(data: bytes | memoryview, open_blob: OpenBlob) -> Any:
    return _Unpickler(io.BytesIO(read(data).pickle), open_blob).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, open_blob: OpenBlob) -> None:
        super().__init__(file)
        self._open_blob = open_blob

    def persistent_load(self, pid: Any) -> Any:
        """An array that was left out, over the memory of its blob."""
        import numpy as np

        match pid:
            case (mark, str() as name, str() as dtype, tuple() as shape, "C" | "F" as order) if mark == ARRAY_MARK:
                blob = memoryview(self._open_blob(name)).toreadonly()
                kind = np.dtype(dtype)
                if math.prod(shape) * kind.itemsize != len(blob):
                    raise MalformedMessage(f"a blob of {len(blob):,} bytes for an array of shape {shape}, {dtype}")
                return np.ndarray(shape, kind, blob, order=order)
        raise MalformedMessage("a pickle that leaves out what is no array")
