from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.tensors.coding import EXACT, Coding
from axonp2p.tensors.encoding import decode, encode
from tests.laboratory.exchange_checks import encoded_bytes

BITS = (32, 16, 8, 4, 2, 1)
DENSE = [Coding(bits=bits) for bits in BITS]
CODINGS = DENSE + [Coding(bits=bits, density=density) for bits in BITS for density in (0.3, 1 / 64)]
HUGE = torch.finfo(torch.float32).max

a_float = st.floats(width=32, allow_nan=False, allow_infinity=False)
a_usual = st.floats(-1, 1, width=32)
vectors = st.one_of(st.lists(a_float, max_size=20), st.lists(a_usual, max_size=700), st.lists(a_float, max_size=300))


def there_and_back(values, coding):
    payload, decoded = encode(values, coding)
    again = decode(payload, len(values))
    assert torch.equal(again.view(torch.int32), decoded.view(torch.int32)), "not equal to the bit"
    assert torch.isfinite(decoded).all()
    return payload, decoded


@settings(max_examples=300, deadline=None)
@given(numbers=vectors, coding=st.sampled_from(CODINGS), seed=st.none() | st.integers(0, 10))
def test_what_comes_out_is_the_same_for_all_and_nearer_than_nothing(numbers, coding, seed):
    values = torch.tensor(numbers, dtype=torch.float32)
    if seed is not None and numbers:  # long ones, and of mixed magnitudes
        values = values.repeat(3) * torch.randn(3 * len(numbers), generator=torch.Generator().manual_seed(seed))
        values = values.clamp(-HUGE, HUGE)
    _, decoded = there_and_back(values, coding)
    assert (values.double() - decoded.double()).norm() <= values.double().norm() * (1 + 1e-6)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("count", [0, 1, 5, 255, 256, 257, 131_072, 131_073])
def test_any_number_of_values(coding, count):
    torch.manual_seed(count)
    payload, decoded = there_and_back(torch.randn(count), coding)
    assert len(decoded) == count
    if coding in DENSE:
        assert len(payload) == encoded_bytes(count, coding)
    else:
        assert len(payload) <= 1.3 * encoded_bytes(count, coding) + 8


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, 1e-40, HUGE, -HUGE])
def test_values_at_the_ends(coding, value):
    values = torch.full((300,), value)
    _, decoded = there_and_back(values, coding)
    assert (values.double() - decoded.double()).norm() <= values.double().norm() * (1 + 1e-6)


def test_exact_is_exact():
    values = torch.tensor([0.1, -0.0, 1e-45, HUGE])
    assert torch.equal(there_and_back(values, EXACT)[1].view(torch.int32), values.view(torch.int32))


def test_sixteen_bits_are_rounded_to_nearest_even():
    steps = torch.tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-9])
    assert there_and_back(steps, Coding(bits=16))[1].tolist() == [1, 1 + 2.0**-6, 1]


def test_the_input_stays_as_it_is():
    values = torch.randn(1000)
    for coding in CODINGS:
        before = values.clone()
        _, decoded = encode(values, coding)
        decoded += 1
        assert torch.equal(values, before)


def test_a_part_of_a_vector():
    vector = torch.randn(1000)
    assert torch.equal(encode(vector[3:777], Coding(bits=2))[1], encode(vector[3:777].clone(), Coding(bits=2))[1])


@pytest.mark.parametrize("coding", [EXACT, Coding(bits=8), Coding(bits=2), Coding(bits=2, density=0.1)])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 150_000, 299_999])
def test_what_is_not_finite_is_refused(coding, value, place):
    values = torch.randn(300_000)
    values[place] = value
    with pytest.raises(ValueError, match="not finite"):
        encode(values, coding)


def test_a_threshold_rules_what_goes_out():
    values = torch.arange(-40.0, 40.0)
    kept = values.abs() >= 37.5
    assert torch.equal(encode(values, Coding(bits=32, density=0.5), threshold=37.5)[1], values * kept)
    assert encode(values, Coding(bits=2, density=0.5), threshold=90.0)[1].count_nonzero() == 0


@pytest.mark.parametrize("bits", BITS)
def test_a_part_never_takes_more_than_all_of_its_values_do(bits):
    values = torch.randn(1000)
    payload, decoded = encode(values, Coding(bits=bits, density=0.5), threshold=1e-9)
    assert len(payload) == encoded_bytes(1000, Coding(bits=bits))
    assert torch.equal(decoded, encode(values, Coding(bits=bits))[1])
    assert encoded_bytes(1000, Coding(bits=bits, density=0.99)) == len(payload)


@pytest.mark.parametrize("coding", [Coding(bits=1), Coding(bits=2, density=1 / 64)])
def test_error_feedback_brings_everything_through(coding):
    """What is left over is added to the next: it stays bounded, so the mean of what goes out nears what came in."""
    torch.manual_seed(0)
    difference, leftover, sent = torch.randn(4096), torch.zeros(4096), torch.zeros(4096)
    for _ in range(400):
        _, decoded = encode(leftover + difference, coding)
        leftover = leftover + difference - decoded
        sent += decoded
    assert (sent / 400 - difference).norm() < 0.35 * difference.norm()


@settings(max_examples=500, deadline=None)
@given(
    bits=st.sampled_from([0, 1, 2, 3, 4, 8, 16, 32, 65535]),
    form=st.integers(0, 2),
    told=st.integers(0, 70),
    body=st.binary(max_size=300),
    kept=st.none() | st.integers(0, 80),
    count=st.integers(0, 70),
)
def test_any_bytes_decode_or_are_refused(bits, form, told, body, kept, count):
    data = struct.pack("<HHI", bits, form, told) + (b"" if kept is None else struct.pack("<If", kept, 0.5)) + body
    decodes_or_is_refused(data, count)
    decodes_or_is_refused(body, count)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(coding=st.sampled_from(CODINGS), count=st.integers(0, 600), data=st.data())
def test_a_payload_with_changed_bytes_decodes_or_is_refused(coding, count, data):
    payload = bytearray(encode(torch.linspace(-1, 1.1, count), coding)[0])
    for place in data.draw(st.lists(st.integers(0, len(payload) - 1), max_size=4)):
        payload[place] = data.draw(st.integers(0, 255))
    decodes_or_is_refused(bytes(payload), count)


def decodes_or_is_refused(data, count):
    try:
        decoded = decode(data, count)
    except ValueError:
        return
    assert decoded.shape == (count,)
    assert torch.isfinite(decoded).all()


@pytest.mark.parametrize("coding", CODINGS)
def test_other_lengths_and_other_counts_are_refused(coding):
    payload, _ = encode(torch.randn(300), coding)
    for wrong in (payload[:-1], payload + b"\0", payload[:5], b""):
        with pytest.raises(ValueError, match="bytes"):
            decode(wrong, 300)
    for count in (0, 299, 301):
        with pytest.raises(ValueError, match="values were expected"):
            decode(payload, count)


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
@pytest.mark.parametrize("scale", [0x7F80, 0x7FC0, 0xBF80, 0x7F00])  # inf, nan, -1, 2^127
def test_a_scale_that_cannot_be_is_refused(bits, scale):
    payload = bytearray(encode(torch.randn(300), Coding(bits=bits))[0])
    payload[10:12] = struct.pack("<H", scale)
    with pytest.raises(ValueError, match="scale"):
        decode(bytes(payload), 300)


@pytest.mark.parametrize("bits", [32, 16])
def test_a_value_that_is_not_finite_is_refused(bits):
    payload = bytearray(encode(torch.randn(300), Coding(bits=bits))[0])
    payload[8:12] = b"\xff\xff\xff\x7f" if bits == 32 else b"\x80\x7f\x00\x00"
    with pytest.raises(ValueError, match="not finite"):
        decode(bytes(payload), 300)


def test_the_expected_size_follows_the_bits():
    assert encoded_bytes(2**18, EXACT) == 8 + 2**20
    assert encoded_bytes(2**18, Coding(bits=8)) == 8 + 2**18 + 2**11
    assert encoded_bytes(2**18, Coding(bits=2, density=1 / 64)) < 2**20 / 195


@pytest.mark.parametrize("coding", CODINGS)
def test_zeros_alone_take_no_bytes(coding):
    payload, decoded = there_and_back(torch.zeros(100_000), coding)
    assert len(payload) == 16
    assert not decoded.any()


@given(st.integers(1, 300), st.sets(st.integers(0, 299)), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_in_32_bits_what_is_mostly_zero_sends_the_rest_and_loses_nothing(count, places, number):
    values = torch.zeros(count)
    values[[place for place in places if place < count]] = number
    payload, decoded = there_and_back(values, EXACT)
    assert torch.equal(decoded, values)
    assert len(payload) <= encoded_bytes(count, EXACT)


def test_a_table_of_which_one_row_in_twenty_moved_takes_a_tenth():
    values = torch.zeros(2000, 32)
    values[::20] = 1 / 3
    payload, _ = there_and_back(values.view(-1), EXACT)
    assert len(payload) < 0.1 * encoded_bytes(64_000, EXACT)
