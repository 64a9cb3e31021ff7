"""The front door of the codings: a flat float32 vector to a payload that says how it is coded, and back. Pure.

bits u16 | form u16 (0: all values, 1: only large ones) | values u32 | as in dense.py or sparse.py
"""

from __future__ import annotations

import struct

import numpy
from torch import Tensor

from axonp2p.tensors.bits import Numbers
from axonp2p.tensors.coding import Coding
from axonp2p.tensors.dense import Piece, decode_dense, dense_bytes, encode_dense, largest_magnitude
from axonp2p.tensors.levels import LARGEST, NORMAL
from axonp2p.tensors.sparse import decode_sparse, encode_sparse, mostly_zero, select, sparse_bytes

_HEAD = struct.Struct("<HHI")
_DENSE, _SPARSE = 0, 1
_WIDTHS = (32, 16, 8, 4, 2, 1)


def encode(values: Tensor, coding: Coding, *, threshold: float | None = None) -> tuple[bytes, Tensor]:
    """The payload of a flat, contiguous float32 vector, and what it decodes to, equal to the bit.

    With a density below 1 only large values go out: those whose magnitude is at least `threshold`, or else about that
    share of them; but all of them do where that takes fewer bytes. Zeros alone take next to no bytes in any coding, nor
    do those among mostly zeros in 32 bits: nothing is lost by it. The decoded values are never farther from `values`
    than zeros are, so that error feedback converges. In less than 32 bits, magnitudes beyond 2^100 are cut to that.
    Raises `ValueError` when a value is not finite.
    """
    values = values.detach()
    largest = largest_magnitude(values)
    if largest > LARGEST and coding.bits < 32:
        values = values.clamp(-LARGEST, LARGEST)
    form, (pieces, decoded) = _coded(values, coding, threshold, nothing=largest == 0)
    return b"".join([_HEAD.pack(coding.bits, form, len(values)), *pieces]), decoded


def decode(payload: bytes | memoryview, count: int) -> Tensor:
    """The `count` float32 values in a payload that somebody else made.

    Raises `ValueError` for anything that `encode` does not make of that many values, before it takes more memory than
    they and the payload do.
    """
    data = memoryview(payload)
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are too few")
    bits, form, told = _HEAD.unpack_from(data)
    if bits not in _WIDTHS or form not in (_DENSE, _SPARSE) or told != count:
        raise ValueError(f"{told} values of {bits} bits in form {form}, where {count} values were expected")
    body = data[_HEAD.size :]
    return decode_dense(body, count, bits, NORMAL) if form == _DENSE else decode_sparse(body, count, bits)


def _coded(
    values: Tensor, coding: Coding, threshold: float | None, *, nothing: bool
) -> tuple[int, tuple[list[Piece], Tensor]]:
    indices: Numbers | None = None
    if nothing:
        indices = numpy.zeros(0, numpy.int64)
    elif coding.density < 1:
        indices = select(values, coding.density, threshold)
    elif coding.bits == 32 and mostly_zero(values):
        indices = numpy.flatnonzero(values.numpy())
    if indices is not None and sparse_bytes(len(values), len(indices), coding.bits) < dense_bytes(
        len(values), coding.bits
    ):
        return _SPARSE, encode_sparse(values, indices, coding.bits)
    return _DENSE, encode_dense(values, coding.bits, NORMAL)
