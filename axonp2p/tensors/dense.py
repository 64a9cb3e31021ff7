"""A vector's values, all of them, each in some bits. Pure.

32 bits: float32. 16: bfloat16, rounded to nearest even. Fewer: the bfloat16 scales of all blocks of 256 values,
then the codes of all values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy
import torch
from torch import Tensor

from axonp2p.tensors.bits import packed_bytes
from axonp2p.tensors.levels import LARGEST_SCALE, Heights, Integers

Piece = bytes | memoryview

BLOCK = 256
"""Values that share a scale."""
SPAN = 512 * BLOCK
"""Values worked on at a time, so that what is in between stays in the processor's cache."""


def dense_bytes(count: int, bits: int) -> int:
    """How many bytes `count` values take."""
    return packed_bytes(count, bits) + (2 * _blocks(count) if bits <= 8 else 0)


def encode_dense(values: Tensor, bits: int, heights: dict[int, Heights]) -> tuple[list[Piece], Tensor]:
    """The bytes of a flat float32 vector, in pieces to be joined, and what they decode to: (values).

    All values are finite, and at most `LARGEST` when there are less than 32 bits. `heights` are for 4, 2 and 1 bits.
    """
    if bits == 32:
        return [values_to_bytes(values)], values.clone()
    if bits == 16:
        rounded = values.to(torch.bfloat16)
        return [_bfloat16_bytes(rounded)], rounded.to(torch.float32)
    levels = _levels(bits, heights)
    scales = torch.empty(_blocks(len(values)), 1, dtype=torch.bfloat16)
    codes = numpy.empty(packed_bytes(len(values), bits), numpy.uint8)
    decoded = torch.empty_like(values)
    for span, blocks, packed, width in _spans(len(values), bits):
        rows = values[span].view(-1, width)
        codes[packed] = levels.encode(rows, scales[blocks], decoded[span].view(-1, width))
    return [_bfloat16_bytes(scales.view(-1)), codes.data], decoded


def decode_dense(data: memoryview, count: int, bits: int, heights: dict[int, Heights]) -> Tensor:
    """The `count` values in `data`. Raises `ValueError` for a wrong length and for what is not finite."""
    if len(data) != dense_bytes(count, bits):
        raise ValueError(f"{len(data)} bytes for {count} values of {bits} bits, which take {dense_bytes(count, bits)}")
    if bits >= 16:
        values = bytes_to_values(data) if bits == 32 else _bfloat16(data).to(torch.float32)
        largest_magnitude(values)
        return values
    levels = _levels(bits, heights)
    scales = _bfloat16(data[: 2 * _blocks(count)]).to(torch.float32).view(-1, 1)
    if count and not (scales.numpy().min() >= 0 and scales.numpy().max() <= LARGEST_SCALE):  # false for nan
        raise ValueError("a scale that is negative, not finite or too large")
    codes = numpy.frombuffer(data[2 * len(scales) :], numpy.uint8)
    decoded = torch.empty(count)
    for span, blocks, packed, width in _spans(count, bits):
        levels.decode(codes[packed], scales[blocks], decoded[span].view(-1, width))
    return decoded


def largest_magnitude(values: Tensor) -> float:
    """Of a flat float32 vector. Raises `ValueError` when a value is not finite."""
    array, largest = values.numpy(), 0.0
    for begin in range(0, len(array), SPAN):
        part = array[begin : begin + SPAN]
        most, least = float(part.max()), float(part.min())  # nan when any is
        if not (math.isfinite(most) and math.isfinite(least)):
            raise ValueError("a value that is not finite")
        largest = max(largest, most, -least)
    return largest


def _levels(bits: int, heights: dict[int, Heights]) -> Integers | Heights:
    return Integers() if bits == 8 else heights[bits]


def _spans(count: int, bits: int) -> Iterator[tuple[slice, slice, slice, int]]:
    """Where the values, scales and codes of each span are, and the width of its blocks; a short block is on its own."""
    whole = count - count % BLOCK
    ends = [*range(SPAN, whole, SPAN), *([whole] if whole else []), *([count] if count > whole else [])]
    begin = 0
    for end in ends:
        packed = slice(packed_bytes(begin, bits), packed_bytes(end, bits))
        yield slice(begin, end), slice(begin // BLOCK, _blocks(end)), packed, min(BLOCK, end - begin)
        begin = end


def _blocks(count: int) -> int:
    return -(-count // BLOCK)


def _bfloat16_bytes(values: Tensor) -> Piece:
    return values.view(torch.int16).numpy().astype("<i2", copy=False).data


def _bfloat16(data: memoryview) -> Tensor:
    return torch.from_numpy(numpy.frombuffer(data, "<i2").astype(numpy.int16)).view(torch.bfloat16)


def values_to_bytes(values: Tensor) -> memoryview:
    """The bytes of a contiguous float32 vector. On little-endian machines they are the tensor's own memory."""
    array = values.detach().numpy().astype("<f4", copy=False)
    return array.data.cast("B")


def bytes_to_values(data: bytes | memoryview) -> Tensor:
    """A new float32 vector from bytes whose number is a multiple of four (`ValueError` when it is not)."""
    array = numpy.frombuffer(data, dtype="<f4")
    return torch.from_numpy(array.astype(numpy.float32, copy=True))
