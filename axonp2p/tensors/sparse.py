"""Only a vector's large values, and where they were. Pure.

The threshold is estimated from a sample at even distances, as in Deep Gradient Compression (Lin et al. 2018), and the
selection is repeated exactly when it comes out far from the share that was asked for.

    kept u32 | floor f32 | indices: upper bits, lower bits | values

Indices are Elias-Fano codes (Elias 1974, Fano 1971): of each index the lower bits as they are; the upper bits, which
only grow, as a bitmap in which the i-th kept value sets the bit number (its upper bits + i). At one value in 64 this is
8 bits for each, 7.4 being the least possible.

In 4, 2 or 1 bits, what a magnitude is above the floor is coded, and the sign; the floor is the least magnitude kept. So
2 bits mean two magnitudes and the sign, and none of the levels is wasted on small values, of which there are none.
"""

from __future__ import annotations

import struct

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonp2p.tensors.bits import Numbers, pack_planes, packed_bytes, plane_bytes, unpack_planes
from axonp2p.tensors.dense import SPAN, Piece, decode_dense, dense_bytes, encode_dense
from axonp2p.tensors.levels import EXPONENTIAL, LARGEST

_HEAD = struct.Struct("<If")
_LEAST = float(numpy.finfo(numpy.float32).tiny)
"""Smaller magnitudes, and zeros, are never kept."""
_SAMPLED = 128
"""How many values of the sample should be above the threshold: its error is then about 9 %."""
_TOO_FEW, _TOO_MANY = 0.8, 1.3
"""Of what was asked for. Outside, the selection is repeated exactly."""


def sparse_bytes(count: int, kept: int, bits: int) -> int:
    """How many bytes `kept` of `count` values take."""
    low = _low_bits(count, kept)
    return (
        _HEAD.size + packed_bytes(_upper_length(count, kept, low), 1) + plane_bytes(kept, low) + dense_bytes(kept, bits)
    )


def kept_count(count: int, density: float) -> int:
    """How many of `count` values are aimed at: at least one, where there are any."""
    return min(count, max(1, round(count * density)))


def threshold_for(values: Tensor, density: float) -> float:
    """The magnitude that about this share of finite values reaches: from a sample, when there are many."""
    stride = max(1, int(len(values) * density / _SAMPLED)) | 1  # odd: rows of matrices mostly have even lengths
    sample = values[::stride].abs()
    above = kept_count(len(sample), density)
    return _nth_largest(sample, above) if above else 0.0


def mostly_zero(values: Tensor) -> bool:
    """Whether more than half of them are 0, as a sample at even distances has it."""
    sample = values.numpy()[:: len(values) // _SAMPLED | 1]
    return 2 * int(numpy.count_nonzero(sample)) < len(sample)


def select(values: Tensor, density: float, threshold: float | None) -> Numbers:
    """The indices of the values to keep, growing: those from `threshold` on, or else about the share `density`."""
    if threshold is not None:
        return _from(values, threshold)
    aim = kept_count(len(values), density)
    estimate = threshold_for(values, density)
    indices = _from(values, estimate)
    if len(indices) < _TOO_FEW * aim and estimate > _LEAST:
        indices = _from(values, _nth_largest(values.abs(), aim))
    if len(indices) > _TOO_MANY * aim:
        magnitudes = numpy.abs(values.numpy()[indices])
        indices = numpy.sort(indices[numpy.argpartition(magnitudes, len(indices) - aim)[-aim:]])
    return indices


def encode_sparse(values: Tensor, indices: Numbers, bits: int) -> tuple[list[Piece], Tensor]:
    """The bytes of the values at growing `indices`, in pieces to be joined, and what they decode to, zeros included."""
    kept = torch.from_numpy(values.numpy()[indices])
    floor = float(kept.abs().min()) if bits <= 4 and len(kept) else 0.0
    pieces, above = encode_dense(_lowered(kept, floor), bits, EXPONENTIAL)
    head = _HEAD.pack(len(indices), floor)
    decoded = _spread(_raised(above, floor), indices, len(values))
    return [head, *_pack_indices(indices, len(values)), *pieces], decoded


def decode_sparse(data: memoryview, count: int, bits: int) -> Tensor:
    """The `count` values in `data`. Raises `ValueError` for any other bytes than `encode_sparse` makes."""
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are too few")
    kept, floor = _HEAD.unpack_from(data)
    if kept > count or len(data) != sparse_bytes(count, kept, bits):
        raise ValueError(f"{len(data)} bytes for {kept} of {count} values of {bits} bits")
    if not 0 <= floor <= LARGEST:
        raise ValueError("a floor that is negative, not finite or too large")
    body = data[_HEAD.size :]
    border = len(body) - dense_bytes(kept, bits)
    indices = _unpack_indices(numpy.frombuffer(body[:border], numpy.uint8), count, kept)
    return _spread(_raised(decode_dense(body[border:], kept, bits, EXPONENTIAL), floor), indices, count)


def _nth_largest(values: Tensor, which: int) -> float:
    return float(torch.topk(values, which, sorted=False).values.min())


def _from(values: Tensor, threshold: float) -> Numbers:
    least = numpy.float32(max(threshold, _LEAST))
    array = values.numpy()
    scratch = numpy.empty(min(SPAN, len(array)), numpy.float32)
    found = []
    for begin in range(0, len(array), SPAN):
        part = array[begin : begin + SPAN]
        found.append(numpy.flatnonzero(numpy.abs(part, out=scratch[: len(part)]) >= least) + begin)
    return numpy.concatenate(found) if found else numpy.zeros(0, numpy.int64)


def _lowered(values: Tensor, floor: float) -> Tensor:
    return torch.copysign(values.abs() - floor, values) if floor else values


def _raised(values: Tensor, floor: float) -> Tensor:
    return values + torch.copysign(torch.tensor(floor), values) if floor else values


def _spread(kept: Tensor, indices: Numbers, count: int) -> Tensor:
    values = torch.zeros(count)
    values.numpy()[indices] = kept.numpy()
    return values


def _low_bits(count: int, kept: int) -> int:
    return (count // kept).bit_length() - 1 if kept else 0


def _upper_length(count: int, kept: int, low: int) -> int:
    """Of the bitmap, in bits: one for each kept value and one for each growth of the upper bits."""
    return kept + (count >> low) if kept else 0


def _pack_indices(indices: Numbers, count: int) -> list[Piece]:
    low = _low_bits(count, len(indices))
    bitmap = numpy.zeros(_upper_length(count, len(indices), low), numpy.uint8)
    bitmap[(indices >> low) + numpy.arange(len(indices))] = 1
    return [numpy.packbits(bitmap, bitorder="little").data, pack_planes(indices, low).data]


def _unpack_indices(data: NDArray[numpy.uint8], count: int, kept: int) -> Numbers:
    low = _low_bits(count, kept)
    border = packed_bytes(_upper_length(count, kept, low), 1)
    places = numpy.flatnonzero(numpy.unpackbits(data[:border], bitorder="little").view(numpy.bool_))
    if len(places) != kept:
        raise ValueError(f"{len(places)} indices for {kept} values")
    indices: Numbers = (places - numpy.arange(kept) << low) | unpack_planes(data[border:], kept, low)
    if kept and (indices[-1] >= count or not (indices[1:] > indices[:-1]).all()):
        raise ValueError("indices that do not grow, or leave the vector")
    return indices
