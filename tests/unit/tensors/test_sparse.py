from __future__ import annotations

import struct

import numpy
import pytest
import torch

from axonp2p.tensors.sparse import (
    decode_sparse,
    encode_sparse,
    kept_count,
    select,
    sparse_bytes,
    threshold_for,
)


def there_and_back(values, indices, bits):
    pieces, decoded = encode_sparse(values, indices, bits)
    data = b"".join(pieces)
    assert len(data) == sparse_bytes(len(values), len(indices), bits)
    assert torch.equal(decode_sparse(memoryview(data), len(values), bits), decoded)
    return decoded


@pytest.mark.parametrize("density", [1 / 4, 1 / 64, 1 / 256])
def test_about_the_share_asked_for_is_kept_and_it_is_the_largest(density):
    torch.manual_seed(0)
    values = torch.randn(100_000)
    indices = select(values, density, None)
    assert 0.8 <= len(indices) / kept_count(len(values), density) <= 1.3
    rest = values.abs()
    rest[torch.from_numpy(indices)] = 0
    assert values[torch.from_numpy(indices)].abs().min() >= rest.max()


def test_the_threshold_is_estimated_from_few_values():
    torch.manual_seed(0)
    values = torch.randn(1_000_000)
    assert threshold_for(values, 1 / 64) == pytest.approx(2.42, rel=0.05)  # of the normal distribution


def test_a_sample_that_saw_too_many_large_values_is_corrected():
    values = torch.zeros(100_000) + torch.linspace(0.1, 0.2, 100_000)
    values[:: int(100_000 / 64 / 128) | 1] = 5.0  # exactly those that the sample takes
    values[2::50] = 4.0
    indices = select(values, 1 / 64, None)
    assert len(indices) == kept_count(100_000, 1 / 64)


def test_a_sample_that_missed_all_large_values_is_corrected():
    values = torch.ones(100_000)
    values[1:90_000:2] = 2.0
    values[:: int(100_000 / 64 / 128) | 1] = 0.5
    assert len(select(values, 1 / 64, None)) == kept_count(100_000, 1 / 64)


def test_equal_magnitudes_do_not_all_go_out():
    values = torch.where(torch.arange(10_000) % 3 == 0, 1.0, -1.0)
    indices = select(values, 1 / 64, None)
    assert len(indices) == kept_count(10_000, 1 / 64)
    assert torch.equal(there_and_back(values, indices, 2)[torch.from_numpy(indices)], values[torch.from_numpy(indices)])


def test_a_threshold_that_is_given_counts_and_nothing_else():
    values = torch.tensor([0.0, 3.0, -4.0, 2.9, 5.0])
    assert select(values, 0.2, 3.0).tolist() == [1, 2, 4]
    assert select(values, 0.2, 9.0).tolist() == []


def test_zeros_never_go_out():
    assert select(torch.zeros(1000), 0.5, None).tolist() == []
    assert select(torch.tensor([0.0, 1e-42, 1.0]), 0.5, 0.0).tolist() == [2]


@pytest.mark.parametrize("bits", [32, 16, 8, 4, 2, 1])
@pytest.mark.parametrize(
    "kept", [[], [0], [999], [0, 999], [500, 501, 502], list(range(1000)), list(range(0, 1000, 7))]
)
def test_what_is_kept_is_where_it_was_and_the_rest_is_zero(bits, kept):
    torch.manual_seed(0)
    values = torch.randn(1000)
    values += values.sign()  # none near zero, to which 8 bits would take it
    decoded = there_and_back(values, numpy.array(kept, numpy.int64), bits)
    assert (decoded != 0).nonzero().view(-1).tolist() == kept
    assert torch.equal(decoded[kept].sign(), values[kept].sign())


def test_levels_are_not_wasted_on_values_below_the_threshold():
    """Two bits of what is kept lose little: less than two bits of normal values, 12 %."""
    torch.manual_seed(0)
    values = torch.randn(1_000_000)
    indices = select(values, 1 / 64, None)
    kept = values[torch.from_numpy(indices)]
    lost = kept - there_and_back(values, indices, 2)[torch.from_numpy(indices)]
    assert float(lost.square().sum() / kept.square().sum()) < 0.005


def test_an_index_takes_little_more_than_it_must():
    """At one in 64 the entropy is 7.4 bits each."""
    assert (sparse_bytes(640_000, 10_000, 1) - 10_000 / 8) * 8 / 10_000 < 8.1


def payload(count, indices, bits=32, floor=0.0):
    pieces, _ = encode_sparse(torch.ones(count), numpy.array(indices, numpy.int64), bits)
    data = bytearray(b"".join(pieces))
    data[4:8] = struct.pack("<f", floor)
    return data


def refused(data, count, match, bits=32):
    with pytest.raises(ValueError, match=match):
        decode_sparse(memoryview(bytes(data)), count, bits)


def test_indices_that_do_not_grow_are_refused():
    data = payload(64, [8, 9])  # 5 lower bits each, planes of one byte; upper bits 0 and 0
    data[9:14] = bytes(5)
    refused(data, 64, "do not grow")


def test_indices_beyond_the_vector_are_refused():
    data = payload(40, [8, 39])  # 4 lower bits; upper bits 0 and 2
    data[9:13] = bytes([0b11] * 4)
    refused(data, 40, "leave the vector")


def test_another_number_of_indices_than_of_values_is_refused():
    data = payload(64, [8, 9])
    data[8] = 0b101101
    refused(data, 64, "4 indices for 2 values")


@pytest.mark.parametrize("floor", [float("nan"), float("inf"), -1.0, 1e38])
def test_a_floor_that_cannot_be_is_refused(floor):
    refused(payload(64, [8, 9], 2, floor), 64, "floor", 2)


def test_wrong_lengths_are_refused():
    data = payload(64, [8, 9])
    refused(data + b"\0", 64, "bytes for 2 of 64")
    refused(data[:-1], 64, "bytes for 2 of 64")
    refused(data[:7], 64, "too few")
    refused(data, 1, "bytes for 2 of 1")
    refused(struct.pack("<If", 2**32 - 1, 0.0), 64, "of 64 values")
