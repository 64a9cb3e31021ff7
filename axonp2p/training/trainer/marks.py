"""Where local steps have come to, as bytes that somebody else can go on from: weights and the optimiser's memory.

    4 bytes: how long the head is | head (msgpack) | weights, float32 | step lengths, float32 | tensors of the optimiser

The optimiser's settings (learning rates and the like) are not in it: who does the steps again uses the task's own, so
that nobody shortens its work by a learning rate of 0. No pickle: the head names kinds and shapes, all else is numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor

from axonp2p.blobs.pieces import PieceBook, book_of
from axonp2p.errors import PeerMisbehaved
from axonp2p.verification.claims import Mark
from axonp2p.wire.codec import Message, decode_as, encode
from axonp2p.wire.quantities import Number
from axonp2p.wire.ranks import MOST_MEMBERS

HEAD_LIMIT = 1024 * 1024
LONGEST_STEP = 1.001 * math.sqrt(MOST_MEMBERS)
"""Times its own length (`step_scale`)."""
_LENGTH_BYTES = 4
_MOST_KINDS = 8
_SMALL = 2**14
_PORTION = 2**20
"""Values."""
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64),
        *(torch.int64, torch.int32, torch.bool),
    )
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_Size = Annotated[int, msgspec.Meta(ge=0, le=2**33)]


class _Remembered(Message, frozen=True, array_like=True):
    """One thing that the optimiser remembers of one parameter: a tensor, whose bytes follow, or a number."""

    parameter: Annotated[int, msgspec.Meta(ge=0, le=2**20)]
    what: Annotated[str, msgspec.Meta(max_length=64)]
    dtype: Annotated[str, msgspec.Meta(max_length=16)]
    """Empty when it is a number."""
    shape: Annotated[list[_Size], msgspec.Meta(max_length=16)]
    number: bool | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | Number | None


class _Head(Message, frozen=True):
    values: _Size
    factors: _Size
    """How many step lengths there are; 0: none."""
    memory: Annotated[list[_Remembered], msgspec.Meta(max_length=2**20)]


Memory = dict[int, dict[str, Any]]
"""The memories of an optimiser: the `state` of its state dict."""


@dataclass(frozen=True)
class MarkBytes:
    """A mark with all its bytes, as it is handed over."""

    leg: int
    step: int
    sketch: bytes = field(repr=False)
    memory: list[float]
    data: bytearray = field(repr=False)

    @cached_property
    def pieces(self) -> PieceBook:
        """The hashes of its pieces: made when they are first asked for, outside the trainer's thread."""
        return book_of(self.file)

    @property
    def file(self) -> memoryview:
        """Its bytes (not a copy)."""
        return memoryview(self.data)

    @property
    def mark(self) -> Mark:
        """The states committed to."""
        return Mark(
            leg=self.leg,
            step=self.step,
            name=self.pieces.name,
            size=len(self.data),
            sketch=self.sketch,
            memory=self.memory,
        )


def to_bytes(weights: Tensor, factors: Tensor | None, memory: Memory) -> tuple[bytearray, list[float]]:
    """All that the next steps follow from, and the norms of what the optimiser remembers.

    Raises `ValueError` for an optimiser whose memory is no plain tensors.
    """
    entries: list[_Remembered] = []
    flats = [weights] if factors is None else [weights, factors]
    norms: list[float] = []
    for what, values in _kinds(memory).items():
        tensors = []
        for parameter, value in values:
            if isinstance(value, Tensor):
                dtype = _NAMES.get(value.dtype)
                if value.layout is not torch.strided or dtype is None:
                    raise ValueError(f"the optimiser remembers {what} as {value.dtype}")
                entries.append(_Remembered(parameter, what, dtype, list(value.shape), None))
                tensors.append(value)
            elif value is None or isinstance(value, bool | int | float):
                entries.append(_Remembered(parameter, what, "", [], value))
            else:
                raise ValueError(f"the optimiser remembers {what} as a {type(value).__name__}")
        joined = list(_joined(tensors))
        flats += joined
        norms += _norm(tensors, joined)
    _check_kinds(norms)
    head = encode(_Head(len(weights), 0 if factors is None else len(factors), entries))
    if len(head) > HEAD_LIMIT:
        raise ValueError(f"the optimiser remembers {len(entries)} things, which is too much to hand over")
    length = len(head).to_bytes(_LENGTH_BYTES, "big")
    return bytearray().join([length, head, *map(_bytes_of, flats)]), norms


def from_bytes(data: bytes | bytearray | memoryview, values: int) -> tuple[Tensor, Tensor | None, Memory]:
    """Weights, step lengths and what the optimiser remembers, of a model with so many values.

    Raises `PeerMisbehaved` when these bytes are no place that could be marked.
    """
    view = memoryview(data)
    length = int.from_bytes(view[:_LENGTH_BYTES], "big")
    if length > min(HEAD_LIMIT, len(view) - _LENGTH_BYTES):
        raise PeerMisbehaved("a mark without a head")
    head = decode_as(bytes(view[_LENGTH_BYTES : _LENGTH_BYTES + length]), _Head, HEAD_LIMIT)
    if head.values != values or head.factors > values:
        raise PeerMisbehaved(f"a mark of {head.values} values, where the model has {values}")
    kinds = [("float32", [head.values]), ("float32", [head.factors])]
    kinds += [(entry.dtype, entry.shape) for entry in head.memory if entry.dtype]
    if any(dtype not in _DTYPES for dtype, _ in kinds):
        raise PeerMisbehaved("a mark with numbers of an unknown kind")
    sizes = [math.prod(shape) * _DTYPES[dtype].itemsize for dtype, shape in kinds]
    if sum(sizes) != len(view) - _LENGTH_BYTES - length:
        raise PeerMisbehaved("a mark with more or fewer bytes than its head says")
    tensors = []
    begin = _LENGTH_BYTES + length
    for (dtype, shape), size in zip(kinds, sizes, strict=True):
        tensors.append(_tensor(view[begin : begin + size], dtype, shape))
        begin += size
    if head.factors and not bool(((tensors[1] >= 1) & (tensors[1] <= LONGEST_STEP)).all()):
        raise PeerMisbehaved("a mark with step lengths that no exchange leads to")
    memory: Memory = {}
    rest = iter(tensors[2:])
    for entry in head.memory:
        memory.setdefault(entry.parameter, {})[entry.what] = next(rest) if entry.dtype else entry.number
    return tensors[0], tensors[1] if head.factors else None, memory


def norms_of(memory: Memory) -> list[float]:
    """The norm of each kind of tensor that an optimiser remembers, by the order of their names."""
    norms: list[float] = []
    for values in _kinds(memory).values():
        tensors = [value for _, value in values if isinstance(value, Tensor)]
        norms += _norm(tensors, _joined(tensors))
    _check_kinds(norms)
    return norms


def _kinds(memory: Memory) -> dict[str, list[tuple[int, Any]]]:
    """Everything remembered, by what it is and then by parameter: in the same order wherever it was put together."""
    kinds: dict[str, list[tuple[int, Any]]] = {}
    for parameter in sorted(memory):
        for what, value in memory[parameter].items():
            kinds.setdefault(what, []).append((parameter, value))
    return dict(sorted(kinds.items()))


def _check_kinds(norms: list[float]) -> None:
    if len(norms) > _MOST_KINDS:
        raise ValueError(f"the optimiser remembers {len(norms)} kinds of tensors; {_MOST_KINDS} are the most")


def _norm(tensors: Sequence[Tensor], joined: Iterable[Tensor]) -> list[float]:
    """Of one kind, whose tensors are `joined`; nothing for counters, of which each tensor is one number."""
    if all(tensor.numel() == 1 for tensor in tensors):
        return []
    # A portion at a time in 64 bits: for all of them there would be no memory.
    real = (torch.view_as_real(flat).view(-1) if flat.is_complex() else flat for flat in joined)
    portions = (part.double() for flat in real for part in torch.split(flat, _PORTION))
    norm = math.sqrt(sum(float(torch.dot(part, part)) for part in portions))
    return [norm if math.isfinite(norm) else 1e300]


def _joined(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """These, flat, in order and in memory, small ones as one: a call for each would cost more than their bytes."""
    small: list[Tensor] = []
    for tensor in tensors:
        like = not small or (tensor.dtype, tensor.device) == (small[0].dtype, small[0].device)
        if small and (tensor.numel() > _SMALL or not like):
            yield torch.cat(small).cpu()
            small = []
        if tensor.numel() > _SMALL:
            yield tensor.reshape(-1).cpu()
        else:
            small.append(tensor.reshape(-1))
    if small:
        yield torch.cat(small).cpu()


def _bytes_of(flat: Tensor) -> memoryview:
    return flat.contiguous().view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def _tensor(data: memoryview, dtype: str, shape: list[int]) -> Tensor:
    if not data:
        return torch.empty(shape, dtype=_DTYPES[dtype])
    return torch.frombuffer(bytearray(data), dtype=_DTYPES[dtype]).reshape(shape)
