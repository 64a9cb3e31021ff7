"""Frozen parameters as one file: its bytes, its name, and what is seen of a change."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.blobs.pieces import PIECE_BYTES, book_of
from axonp2p.errors import MalformedMessage
from axonp2p.tensors.frozen import FrozenTensors
from axonp2p.tensors.frozen_name import NAME_BYTES, NAME_VALUES, name_of, values_of

KINDS = [
    *(torch.float64, torch.float32, torch.bfloat16, torch.float8_e5m2, torch.complex64, torch.bool, torch.int8),
    torch.int64,
]
SHAPES = st.lists(st.integers(0, 5), max_size=3)


def plain(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().reshape(-1).contiguous()
    return bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""


@st.composite
def tensors(draw):
    found = {}
    for number in range(draw(st.integers(0, 5))):
        kind, shape = draw(st.sampled_from(KINDS)), draw(SHAPES)
        data = torch.randint(0, 2, [*shape, kind.itemsize], dtype=torch.uint8)
        tensor = data.view(kind).reshape(shape)
        turned = draw(st.booleans()) and len(shape) > 1
        found[str(number)] = torch.nn.Parameter(tensor.mT if turned else tensor, requires_grad=False)
    return found


@given(tensors(), st.integers(0, 300), st.integers(0, 300))
@settings(deadline=None)
def test_any_slice_of_it_is_that_of_the_tensors_bytes_one_after_the_other(held, begin, end):
    file, whole = FrozenTensors(held), b"".join(map(plain, held.values()))
    assert len(file) == len(whole)
    assert bytes(file[begin:end]) == whole[begin:end]
    assert file.pieces == book_of(whole)
    file.check(held)


@given(tensors())
@settings(deadline=None)
def test_another_file_of_the_same_tensors_is_put_into_them_and_has_its_own_name(held):
    file = FrozenTensors(held)
    other = bytearray(byte ^ 1 for byte in bytes(file[:]))
    file.take(memoryview(other), book_of(other))
    assert bytes(file[:]) == other
    assert b"".join(map(plain, held.values())) == other
    assert file.name == book_of(other).name
    file.check(held)


@given(st.binary(min_size=NAME_BYTES, max_size=NAME_BYTES))
def test_a_name_comes_back_from_its_values(name):
    assert name_of(struct.pack(f"<{NAME_VALUES}f", *values_of(name))) == name


@pytest.mark.parametrize("wrong", [1.0, -0.5, 0.3, float("nan"), float("inf")])
def test_what_is_no_name_is_refused(wrong):
    with pytest.raises(MalformedMessage):
        name_of(struct.pack(f"<{NAME_VALUES}f", wrong, *([0.0] * (NAME_VALUES - 1))))
    with pytest.raises(MalformedMessage):
        name_of(b"")


def large():
    return {name: torch.nn.Parameter(torch.randn(300, 500), requires_grad=False) for name in "ab"}


@pytest.mark.parametrize("place", [0, 77_777, 149_999])
def test_a_changed_number_is_seen_and_its_tensor_named(place):
    held = large()
    file = FrozenTensors(held)
    held["b"].data.view(-1)[place] += 1e-3
    with pytest.raises(ValueError, match=r"b is frozen \(requires_grad=False\) and has changed"):
        file.check(held)


def test_another_tensor_in_its_place_is_seen():
    held = large()
    file = FrozenTensors(held)
    with pytest.raises(ValueError, match="a is frozen"):
        file.check(held | {"a": held["a"].clone()})


def test_pieces_within_a_tensor_are_its_own_memory():
    held = large()
    file = FrozenTensors(held)
    piece = file[:PIECE_BYTES]
    held["a"].data.zero_()
    assert bytes(piece) == bytes(PIECE_BYTES)


def test_what_shares_its_memory_with_itself_is_left_alone_and_takes_no_other_numbers():
    held = {"a": torch.nn.Parameter(torch.ones(3).expand(2, 3), requires_grad=False)}
    file, same = FrozenTensors(held), bytearray(struct.pack("<6f", *([1.0] * 6)))
    file.take(memoryview(same), book_of(same))
    with pytest.raises(ValueError, match="a is frozen and shares its memory"):
        file.take(memoryview(bytearray(24)), book_of(bytes(24)))
