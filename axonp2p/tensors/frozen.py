"""The frozen parameters of a model as one file: the bytes of one tensor after the other, read where they are held.

A frozen parameter has no gradients (`requires_grad=False`). It is in no exchange, state or mark: its file travels once,
to members whose `model()` made other numbers, and to the client for the model's file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonp2p.blobs.pieces import PieceBook, PieceHasher

_BLOCK = 64 * 1024
"""Bytes that are added up to one number, by which a change is seen."""
_ALL = slice(None)


class FrozenTensors:
    """Such a file, whose bytes are those of `tensors`, by name, in this order: nothing is copied.

    `pieces` are the hashes of its pieces; without them they are made here.
    """

    def __init__(self, tensors: Mapping[str, Tensor], pieces: PieceBook | None = None) -> None:
        self._tensors = dict(tensors)
        sizes = (tensor.numel() * tensor.dtype.itemsize for tensor in self._tensors.values())
        self._borders = list(accumulate(sizes, initial=0))
        self.pieces = pieces or self._hashed()
        self._sums = self._added_up()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of the model, in the order of the file."""
        return tuple(self._tensors.values())

    @property
    def file(self) -> FrozenTensors:
        """Its bytes, to be sliced."""
        return self

    @property
    def name(self) -> bytes:
        """SHA-256 of the SHA-256s of its pieces."""
        return self.pieces.name

    def __len__(self) -> int:
        return self._borders[-1]

    def __getitem__(self, place: slice) -> bytes | memoryview:
        """These bytes; where they lie in one tensor they are that one's own memory."""
        begin, end, _ = place.indices(len(self))
        tensors = list(self._tensors.values())
        found = []
        for number in range(max(0, bisect_right(self._borders, begin) - 1), len(tensors)):
            start = self._borders[number]
            if start >= end:
                break
            found.append(_bytes_of(tensors[number], slice(max(0, begin - start), end - start)))
        return found[0] if len(found) == 1 else b"".join(found)

    def take(self, data: memoryview, pieces: PieceBook) -> None:
        """Put the bytes of another file of the same tensors, with these pieces, into the model.

        Raises `ValueError`, with the tensor's name, where that cannot be done.
        """
        assert len(data) == len(self)
        with torch.no_grad():
            for (name, tensor), (begin, end) in zip(self._tensors.items(), pairwise(self._borders), strict=True):
                part = data[begin:end]
                if part == _bytes_of(tensor):
                    continue
                if not has_own_memory(tensor):
                    raise ValueError(f"{name} is frozen and shares its memory with itself: make it .contiguous()")
                numbers = torch.frombuffer(bytearray(part), dtype=torch.uint8).view(tensor.dtype)
                tensor.copy_(numbers.view(tensor.shape))
        self.pieces, self._sums = pieces, self._added_up()

    def check(self, tensors: Mapping[str, Tensor]) -> None:
        """Raise `ValueError`, with the tensor's name, when one has changed; `tensors` are those of the model now."""
        now = self._added_up()
        for (name, tensor), before, after in zip(self._tensors.items(), self._sums, now, strict=True):
            if tensors.get(name) is not tensor or not numpy.array_equal(before, after):
                raise ValueError(
                    f"{name} is frozen (requires_grad=False) and has changed: peers send no frozen parameters to each "
                    "other. Leave requires_grad=True where the task changes a parameter, by its optimiser or itself; "
                    "or hold it in a buffer (register_buffer). Of these peers take the mean"
                )

    def _hashed(self) -> PieceBook:
        hasher = PieceHasher()
        for tensor in self._tensors.values():
            hasher.update(_bytes_of(tensor))
        return hasher.book()

    def _added_up(self) -> list[NDArray[numpy.uint64]]:
        """Of each tensor the sums of its blocks: tens of times as fast as hashes, and who changes one means no harm."""
        return [numpy.concatenate(list(_sums(_bytes_of(tensor)))) for tensor in self._tensors.values()]


def has_own_memory(tensor: Tensor) -> bool:
    """Whether each of its numbers has a place of its own, which that of an expanded tensor has not."""
    return all(size == 1 or stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _sums(data: memoryview) -> Iterator[NDArray[numpy.uint64]]:
    array = numpy.frombuffer(data, numpy.uint8)
    whole = len(array) // _BLOCK * _BLOCK
    yield array[:whole].view("<u8").reshape(-1, _BLOCK // 8).sum(1, dtype=numpy.uint64)  # of 2**64 and more the rest
    yield array[whole:].sum(dtype=numpy.uint64, keepdims=True)


def _bytes_of(tensor: Tensor, place: slice = _ALL) -> memoryview:
    """Its bytes, or these of them; a copy only where it does not lie in memory as its file has it."""
    flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1).contiguous()
    return flat.view(torch.uint8)[place].cpu().numpy().data if flat.numel() else memoryview(b"")
