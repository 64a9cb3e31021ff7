"""Where each tensor of a model stands in its vector (`flat`): the sections, their sizes and what lies in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import torch

from axonp2p.blobs.pieces import PieceBook
from axonp2p.tensors import wide
from axonp2p.tensors.frozen_name import NAME_VALUES

Section = Literal[
    "parameters",
    "rows",
    "by hand",
    "float buffers",
    "bits",
    "small integers",
    "frozen",
    "wide floats",
    "wide integers",
]
SECTIONS: tuple[Section, ...] = get_args(Section)
_NO_FILE = PieceBook(b"")


@dataclass(frozen=True)
class HeldTensor:
    """One tensor of the model, and where it stands."""

    name: str
    dtype: torch.dtype
    section: Section
    elements: int
    made_up: bool
    """Whether the state dict makes it up each time it is asked for: nothing can be put into it."""

    @property
    def bytes(self) -> int:
        """Its bytes in the model's memory."""
        return self.elements * self.dtype.itemsize

    @property
    def values(self) -> int:
        """How many float32 values it takes."""
        if self.section == "frozen":
            return 0
        if self.section == "bits":
            return self.elements * self.dtype.itemsize // unit_of(self.dtype).itemsize
        if self.section in ("wide floats", "wide integers"):
            return self.elements * wide.LANES
        return self.elements * (2 if self.dtype.is_complex else 1)


@dataclass(frozen=True)
class Layout:
    """How many values each section has, how many elements each tensor has, and the tensors, in the vector's order."""

    parameters: int
    float_buffers: int
    integer_buffers: int
    """The small ones."""
    lengths: tuple[int, ...]
    rows: int = 0
    by_hand: int = 0
    bits: int = 0
    frozen: PieceBook = _NO_FILE
    """The hashes of the file of the frozen parameters; empty where there are none."""
    wide_floats: int = 0
    """Three for each number, as of the next."""
    wide_integers: int = 0
    tensors: tuple[HeldTensor, ...] = ()

    @property
    def bounds(self) -> dict[Section, slice]:
        """Where each section is."""
        sizes = (self.parameters, self.rows, self.by_hand, self.float_buffers, self.bits, self.integer_buffers)
        ends = [0]
        for size in (*sizes, self.name_values, self.wide_floats, self.wide_integers):
            ends.append(ends[-1] + size)
        return {name: slice(begin, end) for name, (begin, end) in zip(SECTIONS, pairwise(ends), strict=True)}

    @property
    def wide(self) -> slice:
        """Where the values are of which three are a number."""
        return slice(self.values - self.wide_floats - self.wide_integers, self.values)

    @property
    def values(self) -> int:
        """The length of the whole vector."""
        narrow = self.parameters + self.rows + self.by_hand + self.float_buffers + self.bits + self.integer_buffers
        return narrow + self.name_values + self.wide_floats + self.wide_integers

    @property
    def name_values(self) -> int:
        """How many of them name the file of the frozen parameters."""
        return NAME_VALUES if self.frozen.hashes else 0

    @property
    def frozen_name(self) -> bytes:
        """The name of that file; empty where there is none."""
        return self.frozen.name if self.frozen.hashes else b""

    @property
    def frozen_bytes(self) -> int:
        """How large that file is."""
        return sum(held.bytes for held in self.tensors if held.section == "frozen")

    @property
    def moving(self) -> int:
        """How many values an exchange sends exactly, as far as can be known: what stays as it is costs nothing."""
        exact = self.values - self.parameters - self.by_hand - self.bits - self.name_values
        return exact - self.rows * 7 // 8

    def places(self) -> Iterator[tuple[HeldTensor, tuple[int, int]]]:
        """Where each tensor's values begin and end; of wide numbers the first of three, of frozen ones the bytes."""
        begins = {section: place.start for section, place in self.bounds.items()} | {"frozen": 0}
        for held in self.tensors:
            if held.section == "frozen":
                length = held.bytes
            else:
                length = held.elements if held.section.startswith("wide") else held.values
            yield held, (begins[held.section], begins[held.section] + length)
            begins[held.section] += length


def unit_of(dtype: torch.dtype) -> torch.dtype:
    """In which the bits of such numbers are cut."""
    return torch.int16 if dtype.itemsize > 1 else torch.uint8
