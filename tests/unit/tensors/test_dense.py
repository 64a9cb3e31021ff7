from __future__ import annotations

import pytest
import torch

from axonp2p.tensors.dense import bytes_to_values, values_to_bytes


def test_values_are_little_endian_float32():
    assert bytes(values_to_bytes(torch.tensor([1.0, -2.0]))) == bytes.fromhex("0000803f 000000c0")


def test_bytes_become_the_same_values_and_a_memory_of_their_own():
    values = torch.tensor([0.1, float("inf"), -0.0])
    data = bytearray(values_to_bytes(values))
    back = bytes_to_values(data)
    data[:] = bytes(len(data))
    assert torch.equal(back, values)


def test_a_part_of_a_vector_is_not_copied():
    vector = torch.arange(10.0)
    view = values_to_bytes(vector[2:4])
    vector[2] = 7.0
    assert bytes_to_values(view).tolist() == [7.0, 3.0]


def test_broken_values_are_refused():
    with pytest.raises(ValueError, match="multiple"):
        bytes_to_values(b"12345")
