"""The model's file (safetensors), written from an accepted state's file, whose name proves its bytes.

Frozen parameters are taken from their own file, which the state names. The values are those that the model would hold
after `tensors.flat.write`, to the bit, without torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy
from numpy.typing import NDArray

from axonp2p.tensors.checkpoint_file import LENGTH_BYTES, Model, header_length
from axonp2p.training.messages import FileLayout, TensorInfo
from axonp2p.training.state_transfer.model_layout import file_order, header_of, spans_of, unit_bytes

SPAN = 2**20
"""Values, or bytes of frozen parameters, that are written at once."""
NOTHING = memoryview(b"")
"""Of a model without frozen parameters."""

_Lanes = list[NDArray[numpy.float32]]
_BITS: dict[int, Any] = {1: numpy.uint8, 2: numpy.uint16}
_DTYPES: dict[str, Any] = {
    "U64": numpy.uint64,
    "I64": numpy.int64,
    "U32": numpy.uint32,
    "I32": numpy.int32,
    "F16": numpy.float16,
    "U16": numpy.uint16,
    "I16": numpy.int16,
    "I8": numpy.int8,
    "U8": numpy.uint8,
    "BOOL": numpy.bool_,
}


def write_model(file: IO[bytes], state: Path, layout: FileLayout, model: Model, frozen: memoryview = NOTHING) -> bytes:
    """Write the model of a state's file and the frozen parameters that it names; gives the SHA-256. Blocks."""
    with state.open("rb") as opened:
        begin = header_length(opened.read(LENGTH_BYTES))
    return write_weights(file, numpy.memmap(state, numpy.float32, "r", begin, (model.values,)), layout, frozen)


def write_weights(
    file: IO[bytes], weights: NDArray[numpy.float32], layout: FileLayout, frozen: memoryview | bytes = NOTHING
) -> bytes:
    """The same, of all values of a state's weights."""
    hasher = hashlib.sha256()
    for part in _parts(layout, weights, numpy.frombuffer(frozen, numpy.uint8)):
        hasher.update(part)
        file.write(part)
    return hasher.digest()


def _parts(layout: FileLayout, weights: NDArray[numpy.float32], frozen: NDArray[numpy.uint8]) -> Iterator[bytes]:
    yield header_of(layout)
    for one in file_order(layout):
        if one.coding == "frozen":
            ((begin, end),) = spans_of(one)
            for at in range(begin, end, SPAN):
                yield frozen[at : min(at + SPAN, end)].tobytes()
            continue
        lanes = [weights[begin:end] for begin, end in spans_of(one)]
        for at in range(0, len(lanes[0]), SPAN):
            with numpy.errstate(all="ignore"):
                yield _numbers(one, [lane[at : at + SPAN] for lane in lanes]).tobytes()


def _numbers(one: TensorInfo, lanes: _Lanes) -> NDArray[Any]:
    if one.coding == "wide":
        return _joined_floats(lanes) if one.dtype == "F64" else _joined_integers(lanes).astype(_DTYPES[one.dtype])
    (values,) = lanes
    if one.coding == "bits":  # each part of a number is a fraction below 1
        parts = (values * 2.0 ** (8 * unit_bytes(one))).astype(numpy.int32)
        numbers: NDArray[Any] = parts.astype(_BITS[unit_bytes(one)])
        return numbers
    match one.dtype:
        case "F32" | "C64":
            return values
        case "BF16":
            bits = values.view(numpy.uint32).astype(numpy.uint64)
            return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
        case "F8_E4M3":
            return _of_eight_bits(values, 3, 7, 126)
        case "F8_E5M2":
            return _of_eight_bits(values, 2, 15, 124)
        case "F16":
            return values.astype(numpy.float16)
        case _:
            return numpy.rint(values).astype(_DTYPES[one.dtype])


def _joined_floats(lanes: _Lanes) -> NDArray[numpy.float64]:
    """float64 numbers of three values each (`tensors.wide`)."""
    high, middle, low = (lane.astype(numpy.float64) for lane in lanes)
    return numpy.where(middle == 0, high, high + middle + low)


def _joined_integers(lanes: _Lanes) -> NDArray[numpy.int64]:
    """int64 numbers of three values each (`tensors.wide`)."""
    parts = numpy.clip(numpy.nan_to_num(numpy.stack(lanes)), numpy.float32(-(2.0**63)), numpy.float32(2**63 - 2**39))
    whole = numpy.floor(parts)
    left = numpy.rint((parts - whole).sum(0, dtype=numpy.float64)).astype(numpy.int64)
    numbers: NDArray[numpy.int64] = whole.astype(numpy.int64).sum(0) + left
    return numbers


def _of_eight_bits(values: NDArray[numpy.float32], fraction: int, bias: int, beyond: int) -> NDArray[numpy.uint8]:
    """The nearest numbers of eight bits, of two as near the even code; `beyond` is the code of all that is too large.

    Micikevicius et al., FP8 formats for deep learning, arXiv 2209.05433.
    """
    codes = numpy.arange(beyond + 1)
    exponent, rest = codes >> fraction, codes & (2**fraction - 1)
    scaled = numpy.where(exponent > 0, 2**fraction + rest, rest)
    numbers = (scaled * 2.0 ** (numpy.maximum(exponent, 1) - bias - fraction)).astype(numpy.float32)
    middles, sizes = (numbers[1:] + numbers[:-1]) / 2, numpy.abs(values)
    lower, upper = (numpy.searchsorted(middles, sizes, side) for side in ("left", "right"))
    nearest = numpy.where(numpy.isnan(values), 127, numpy.where(lower % 2 == 0, lower, upper))
    told: NDArray[numpy.uint8] = (nearest + 128 * numpy.signbit(values)).astype(numpy.uint8)
    return told
