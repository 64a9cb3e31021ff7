"""Does a model's file hold the accepted state? Compared by value with the state's own file, which its name proves.

The file says where in the state each of its tensors stands (`PLACES`); together they must be all of the weights. What
is only the word of those that made it: which name stands where, shapes, and tensors that are not trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy
from numpy.typing import NDArray

from axonp2p.errors import MalformedMessage
from axonp2p.training.checkpoint_file import LENGTH_BYTES, Model, header_length

PLACES = "axon.places"
LONGEST_HEADER = 64 * 1024 * 1024
SPAN = 2**20
"""Values that are compared at once."""

Size = Annotated[int, msgspec.Meta(ge=0, le=2**53)]

_DTYPES: dict[str, Any] = {
    "F64": numpy.float64,
    "F32": numpy.uint32,
    "F16": numpy.float16,
    "BF16": numpy.uint16,
    "I64": numpy.int64,
    "I32": numpy.int32,
    "I16": numpy.int16,
    "I8": numpy.int8,
    "U8": numpy.uint8,
    "BOOL": numpy.bool_,
}


class _Entry(msgspec.Struct):
    dtype: str
    shape: list[Size]
    data_offsets: tuple[Size, Size]


def holds(file: Path, state: Path, model: Model) -> bool:
    """Whether the model's file has the weights of the state's file, whose bytes are known to be right. Blocks."""
    try:
        return _holds(numpy.memmap(file, numpy.uint8, "r"), _weights(state, model), model)
    except (OSError, ValueError, msgspec.MsgspecError, MalformedMessage):
        return False


def _weights(state: Path, model: Model) -> NDArray[numpy.float32]:
    with state.open("rb") as opened:
        begin = header_length(opened.read(LENGTH_BYTES))
    return numpy.memmap(state, numpy.float32, "r", begin, (model.values,))


def _holds(data: NDArray[numpy.uint8], weights: NDArray[numpy.float32], model: Model) -> bool:
    length = int.from_bytes(data[:LENGTH_BYTES].tobytes(), "little")
    if length > min(LONGEST_HEADER, len(data) - LENGTH_BYTES):
        return False
    body = LENGTH_BYTES + length
    header = msgspec.json.decode(data[LENGTH_BYTES:body].tobytes(), type=dict[str, msgspec.Raw])
    said = msgspec.json.decode(header.pop("__metadata__", msgspec.Raw(b"{}")), type=dict[str, str])
    places = msgspec.json.decode(said.get(PLACES, "{}"), type=dict[str, Size])
    covered = 0
    for begin, name in sorted((begin, name) for name, begin in places.items()):
        entry = msgspec.json.decode(header[name], type=_Entry) if name in header else None
        if entry is None or entry.dtype not in _DTYPES or begin > covered:
            return False
        dtype = numpy.dtype(_DTYPES[entry.dtype])
        first, end = entry.data_offsets
        count = (end - first) // dtype.itemsize
        if first > end or body + end > len(data) or begin + count > len(weights):
            return False
        values = numpy.frombuffer(data, dtype, count, body + first)
        if not _equal(values, weights[begin : begin + count], entry.dtype):
            return False
        covered = max(covered, begin + count)
    return covered == model.values


def _equal(values: NDArray[Any], weights: NDArray[numpy.float32], dtype: str) -> bool:
    for at in range(0, len(values), SPAN):
        theirs, ours = values[at : at + SPAN], weights[at : at + SPAN]
        told = _rounded(ours, dtype, theirs.dtype)
        if not numpy.array_equal(theirs, told, equal_nan=theirs.dtype.kind == "f"):
            return False
    return True


def _rounded(weights: NDArray[numpy.float32], dtype: str, to: Any) -> NDArray[Any]:
    """Weights as the model holds them (`tensors.flat.write`)."""
    if dtype == "F32":
        return weights.view(numpy.uint32)
    if dtype == "BF16":
        bits = weights.view(numpy.uint32).astype(numpy.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    with numpy.errstate(all="ignore"):
        return (weights if dtype.startswith("F") else numpy.rint(weights)).astype(to)
