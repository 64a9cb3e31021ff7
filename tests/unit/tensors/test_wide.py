from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.tensors import wide

INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT64 = st.floats(-(2.0**100), 2.0**100, allow_subnormal=False).filter(lambda number: not 0 < abs(number) < 2.0**-90)


def bits(numbers):
    return torch.tensor(numbers, dtype=torch.float64).view(torch.int64).tolist()


@given(st.lists(INT64, max_size=5))
def test_every_int64_comes_back_from_its_three_values(numbers):
    lanes = wide.split_integers(torch.tensor(numbers, dtype=torch.int64))
    assert lanes.dtype == torch.float32
    assert wide.joined_integers(lanes).tolist() == numbers


@given(st.lists(FLOAT64, max_size=5))
def test_every_float64_of_usual_size_comes_back_to_the_bit(numbers):
    tensor = torch.tensor(numbers, dtype=torch.float64)
    assert bits(wide.joined_floats(wide.split_floats(tensor)).tolist()) == bits(numbers)
    assert wide.holds(tensor)


@given(st.floats(-(2.0**100), 2.0**100))
def test_of_the_smallest_numbers_no_more_is_lost_than_float32_has_room_for(number):
    back = wide.joined_floats(wide.split_floats(torch.tensor([number], dtype=torch.float64))).item()
    assert abs(back - number) <= 2.0**-149


def test_numbers_without_room_are_known():
    for number in (math.inf, -math.inf, 1e300, 5e-324, 1.5e-40):
        assert not wide.holds(torch.tensor([1.0, number], dtype=torch.float64))
    assert wide.holds(torch.tensor([0.0, -0.0, math.pi, 1e30], dtype=torch.float64))


@given(st.lists(st.tuples(INT64, INT64), max_size=4), st.lists(st.tuples(FLOAT64, FLOAT64), max_size=4))
def test_what_is_taken_off_is_taken_off_in_the_numbers_own_kind(integers, floats):
    def lanes(at):
        return torch.cat(
            [
                wide.split_floats(torch.tensor([pair[at] for pair in floats], dtype=torch.float64)),
                wide.split_integers(torch.tensor([pair[at] for pair in integers], dtype=torch.int64)),
            ]
        )

    left = wide.less(lanes(0), lanes(1), len(floats))
    border = wide.LANES * len(floats)
    wrapped = [(one - other + 2**63) % 2**64 - 2**63 for one, other in integers]
    assert wide.joined_integers(left[border:]).tolist() == wrapped
    for got, (one, other) in zip(wide.joined_floats(left[:border]).tolist(), floats, strict=True):
        assert abs(got - (one - other)) <= 2.0**-149


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4))
def test_the_mean_of_integers_is_their_mean_rounded_to_seven_digits_of_it(changes):
    lanes = torch.stack([wide.split_integers(torch.tensor([change])) for change in changes])
    mean = wide.joined_integers(lanes.double().mean(0).float()).item()
    assert abs(mean - sum(changes) / len(changes)) <= 0.51 + max(map(abs, changes)) * 2.0**-23


@given(st.lists(st.floats(width=32), min_size=6, max_size=6))
def test_what_a_stranger_says_is_some_number(lanes):
    told = torch.tensor(lanes, dtype=torch.float32)
    assert wide.less(told, told.flip(0), 1).shape == (6,)
