"""Does a model's file hold the accepted state? Compared by value with the state's own file, which its name proves.

The file says where in the state each of its tensors stands (`PLACES`); together they must be all of the weights. What
is only the word of those that made it: which name stands where, shapes, and tensors that are not trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy
from numpy.typing import NDArray

from axonp2p.errors import MalformedMessage
from axonp2p.training.state_transfer.checkpoint_file import LENGTH_BYTES, Model, header_length
from axonp2p.wire.json_form import decode_json

PLACES = "axon.places"
LONGEST_HEADER = 64 * 1024 * 1024
SPAN = 2**20
"""Values that are compared at once."""
LANES = 3
"""Values that a wide number takes (`tensors.wide`)."""

Size = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
How = Literal["values", "bits", "wide"]
Place = tuple[How, Size, Size]
"""How a tensor stands in the state, where its first value is, and how far apart the lanes of wide numbers are."""

_DTYPES: dict[str, Any] = {
    "F64": numpy.float64,
    "F32": numpy.uint32,
    "F16": numpy.float16,
    "BF16": numpy.uint16,
    "F8_E4M3": numpy.uint8,
    "F8_E5M2": numpy.uint8,
    "C64": numpy.uint32,
    "I64": numpy.int64,
    "U64": numpy.uint64,
    "I32": numpy.int32,
    "U32": numpy.uint32,
    "I16": numpy.int16,
    "U16": numpy.uint16,
    "I8": numpy.int8,
    "U8": numpy.uint8,
    "BOOL": numpy.bool_,
}
"""Of complex numbers, one half."""


class _Entry(msgspec.Struct):
    dtype: Annotated[str, msgspec.Meta(max_length=16)]
    shape: Annotated[list[Size], msgspec.Meta(max_length=64)]
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
    header = decode_json(data[LENGTH_BYTES:body].tobytes(), dict[str, msgspec.Raw])
    said = decode_json(bytes(header.pop("__metadata__", msgspec.Raw(b"{}"))), dict[str, str])
    places = decode_json(said.get(PLACES, "{}").encode(), dict[str, Place])
    covered: list[tuple[int, int]] = []
    for name, (how, begin, apart) in places.items():
        entry = decode_json(bytes(header[name]), _Entry) if name in header else None
        if entry is None or entry.dtype not in _DTYPES:
            return False
        first, end = entry.data_offsets
        if first > end or body + end > len(data):
            return False
        dtype = numpy.dtype(_DTYPES[entry.dtype])
        if how == "bits":
            dtype = numpy.dtype(numpy.uint8 if entry.dtype.startswith("F8") else numpy.uint16)
        values = numpy.frombuffer(data, dtype, (end - first) // dtype.itemsize, body + first)
        lanes = [(begin + lane * apart, begin + lane * apart + len(values)) for lane in range(LANES)]
        spans = lanes if how == "wide" else lanes[:1]
        if any(stop > len(weights) for _, stop in spans):
            return False
        if not _equal(values, [weights[start:stop] for start, stop in spans], how, entry.dtype):
            return False
        covered += spans
    return _is_all(covered, model.values)


def _is_all(spans: list[tuple[int, int]], count: int) -> bool:
    reached = 0
    for begin, end in sorted(spans):
        if begin > reached:
            return False
        reached = max(reached, end)
    return reached == count


def _equal(values: NDArray[Any], lanes: list[NDArray[numpy.float32]], how: How, dtype: str) -> bool:
    for at in range(0, len(values), SPAN):
        theirs, ours = values[at : at + SPAN], [lane[at : at + SPAN] for lane in lanes]
        with numpy.errstate(all="ignore"):
            if how == "values" and dtype.startswith("F8"):
                same = _are_nearest(theirs, ours[0], dtype)
            else:
                told = {"values": _rounded, "bits": _bits, "wide": _joined}[how](ours, dtype, theirs.dtype)
                same = bool(numpy.array_equal(theirs, told, equal_nan=theirs.dtype.kind == "f"))
        if not same:
            return False
    return True


def _rounded(lanes: list[NDArray[numpy.float32]], dtype: str, to: Any) -> NDArray[Any]:
    """Weights as the model holds them (`tensors.flat.write`)."""
    (weights,) = lanes
    if dtype in ("F32", "C64"):
        return weights.view(numpy.uint32)
    if dtype == "BF16":
        bits = weights.view(numpy.uint32).astype(numpy.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return (weights if dtype.startswith("F") else numpy.rint(weights)).astype(to)


def _bits(lanes: list[NDArray[numpy.float32]], dtype: str, to: Any) -> NDArray[Any]:
    """Parts of numbers that float32 has no room for, each a fraction below 1."""
    parts: NDArray[Any] = (lanes[0] * 2.0 ** (8 * to.itemsize)).astype(numpy.int32).astype(to)
    return parts


def _joined(lanes: list[NDArray[numpy.float32]], dtype: str, to: Any) -> NDArray[Any]:
    """Numbers of three values each (`tensors.wide`)."""
    if dtype == "F64":
        high, middle, low = (lane.astype(numpy.float64) for lane in lanes)
        return numpy.where(middle == 0, high, high + middle + low)
    parts = numpy.clip(numpy.nan_to_num(numpy.stack(lanes)), numpy.float32(-(2.0**63)), numpy.float32(2**63 - 2**39))
    whole = numpy.floor(parts)
    left = numpy.rint((parts - whole).sum(0, dtype=numpy.float64)).astype(numpy.int64)
    numbers: NDArray[Any] = (whole.astype(numpy.int64).sum(0) + left).astype(to)
    return numbers


def _are_nearest(codes: NDArray[numpy.uint8], weights: NDArray[numpy.float32], dtype: str) -> bool:
    """Whether each code of eight bits is one of a number than which no other is nearer to the weight."""
    numbers = _of_eight_bits(dtype)
    finite = numpy.sort(numbers[numpy.isfinite(numbers)])
    told = numbers[codes]
    above = finite[numpy.clip(numpy.searchsorted(finite, weights), 0, len(finite) - 1)]
    below = finite[numpy.clip(numpy.searchsorted(finite, weights) - 1, 0, len(finite) - 1)]
    nearest = numpy.minimum(numpy.abs(above - weights), numpy.abs(below - weights))
    outside = ~numpy.isfinite(told) & ~(numpy.abs(weights) < finite[-1])
    return bool(numpy.all((numpy.abs(told - weights) <= nearest) | outside))


def _of_eight_bits(dtype: str) -> NDArray[numpy.float32]:
    """What each of the 256 codes stands for (Micikevicius et al., FP8 formats for deep learning)."""
    codes = numpy.arange(256)
    fraction, bias = (3, 7) if dtype == "F8_E4M3" else (2, 15)
    exponent, rest = (codes & 127) >> fraction, codes & (2**fraction - 1)
    scaled = numpy.where(exponent > 0, 2**fraction + rest, rest)
    numbers = scaled * 2.0 ** (numpy.maximum(exponent, 1) - bias - fraction) * numpy.where(codes > 127, -1.0, 1.0)
    top = (codes & 127) == 127 if dtype == "F8_E4M3" else exponent == 31
    return numpy.where(top, numpy.nan, numbers).astype(numpy.float32)
