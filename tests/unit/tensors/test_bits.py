from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.tensors.bits import pack_codes, pack_planes, packed_bytes, plane_bytes, unpack_planes, unpacking_table


def test_the_first_code_is_in_the_lowest_bits():
    assert bytes(pack_codes(numpy.array([1, 2, 3, 0, 1], numpy.uint8), 2)) == bytes([0b00111001, 0b01])
    assert bytes(pack_codes(numpy.array([10, 11, 12], numpy.uint8), 4)) == bytes([0xBA, 0x0C])
    assert bytes(pack_codes(numpy.array([1, 0, 0, 0, 0, 0, 0, 0, 1], numpy.uint8), 1)) == bytes([1, 1])


@pytest.mark.parametrize("width", [1, 2, 4])
@given(data=st.data())
def test_codes_come_back_by_the_table(width, data):
    codes = numpy.array(data.draw(st.lists(st.integers(0, 2**width - 1), max_size=70)), numpy.uint8)
    packed = pack_codes(codes, width)
    assert len(packed) == packed_bytes(len(codes), width)
    back = unpacking_table(numpy.arange(2**width, dtype=numpy.float32), width)[packed].reshape(-1)
    assert (back[: len(codes)] == codes).all()
    assert (back[len(codes) :] == 0).all()


@given(width=st.integers(0, 31), data=st.data())
def test_planes_come_back(width, data):
    numbers = numpy.array(data.draw(st.lists(st.integers(0, 2**width - 1), max_size=40)), numpy.int64)
    packed = pack_planes(numbers, width)
    assert len(packed) == plane_bytes(len(numbers), width)
    assert (unpack_planes(packed, len(numbers), width) == numbers).all()


def test_planes_are_of_the_lowest_bits_only():
    assert unpack_planes(pack_planes(numpy.array([5, 1030]), 2), 2, 2).tolist() == [1, 2]
