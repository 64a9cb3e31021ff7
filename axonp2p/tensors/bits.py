"""Small whole numbers packed side by side into bytes, and unpacked. numpy only, whole arrays at a time."""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

Bytes = NDArray[numpy.uint8]
Numbers = NDArray[numpy.int64]

_HOLDS: dict[int, tuple[str, tuple[int, ...]]] = {4: ("<u2", (4,)), 2: ("<u4", (6, 12, 18))}
"""Read as one number, as many codes as a byte holds: with these shifts they meet in its lowest byte."""


def packed_bytes(count: int, width: int) -> int:
    """How many bytes `count` numbers of `width` bits take."""
    return (count * width + 7) // 8


def pack_codes(codes: Bytes, width: int) -> Bytes:
    """Numbers below 2 ** width (width 1, 2 or 4) to bytes, the first in the lowest bits; zeros fill the last byte."""
    if width == 1:
        return numpy.packbits(codes, bitorder="little")
    if missing := -len(codes) % (8 // width):
        codes = numpy.concatenate([codes, numpy.zeros(missing, numpy.uint8)])
    kind, shifts = _HOLDS[width]
    wide = codes.view(kind)
    together = wide.copy()
    for shift in shifts:
        together |= wide >> shift
    return together.astype(numpy.uint8)  # the lowest byte


def unpacking_table(heights: NDArray[numpy.float32], width: int) -> NDArray[numpy.float32]:
    """For each byte the values of the codes in it, (256, 8 // width), when code c stands for `heights[c]`."""
    shifts = numpy.arange(0, 8, width)
    codes = (numpy.arange(256)[:, None] >> shifts) & (2**width - 1)
    table: NDArray[numpy.float32] = heights[codes]
    return table


def pack_planes(numbers: Numbers, width: int) -> Bytes:
    """The lowest `width` bits (31 at most) of numbers: first the lowest bit of all, then the next, ..."""
    short = _short(numbers, width)
    planes = [numpy.packbits(short >> bit & 1, bitorder="little") for bit in range(width)]
    return numpy.concatenate([numpy.zeros(0, numpy.uint8), *planes])


def plane_bytes(count: int, width: int) -> int:
    """How many bytes `pack_planes` makes."""
    return width * packed_bytes(count, 1)


def unpack_planes(data: Bytes, count: int, width: int) -> Numbers:
    """The values that `pack_planes` packed into `data`, which must have `plane_bytes(count, width)` bytes."""
    short = _short(numpy.zeros(count, numpy.int64), width)
    for bit, plane in enumerate(data.reshape(width, -1) if width else ()):
        short |= numpy.unpackbits(plane, count=count, bitorder="little").astype(short.dtype) << bit
    return short.astype(numpy.int64)


def _short(numbers: Numbers, width: int) -> NDArray[numpy.integer]:
    """With no more bytes a number than needed."""
    return numbers.astype(numpy.uint8 if width <= 8 else numpy.uint32)
