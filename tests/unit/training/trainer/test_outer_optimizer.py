from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axonp2p.blobs.pieces import PIECE_BYTES
from axonp2p.tensors.flat import minus
from axonp2p.tensors.layout import Layout
from axonp2p.tensors.wide import joined_floats, joined_integers, split_floats, split_integers
from axonp2p.training.trainer.outer_optimizer import OuterStep, check_size, first_state, outer_step, state_from_file

LAYOUT = Layout(parameters=4, float_buffers=2, integer_buffers=1, lengths=(4, 2, 1))


def test_parameters_take_the_step_of_torchs_own_nesterov_sgd():
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0, 0.5]))
    sgd = torch.optim.SGD([parameter], lr=0.7, momentum=0.9, nesterov=True)
    state = first_state(torch.cat([parameter.detach(), torch.zeros(3)]), LAYOUT)
    chance = torch.Generator().manual_seed(5)
    for _ in range(6):
        mean = torch.cat([torch.randn(4, generator=chance), torch.zeros(3)])
        parameter.grad = mean[:4].clone()
        sgd.step()
        state = outer_step(state, mean, 0.7, 0.9)
        assert torch.allclose(state.weights[:4], parameter.detach(), rtol=1e-5, atol=1e-6)


def test_buffers_become_the_mean_of_all_members_and_integers_whole():
    state = first_state(torch.tensor([0.0, 0, 0, 0, 1.0, 2.0, 10.0]), LAYOUT)
    after = outer_step(state, torch.tensor([0.0, 0, 0, 0, 0.25, -0.5, -3.4]), 0.7, 0.9)
    assert after.weights[4:].tolist() == [0.75, 2.5, 13.0]


def test_the_same_step_gives_the_same_bits_everywhere():
    chance = torch.Generator().manual_seed(1)
    layout = Layout(1000, 10, 0, (1000, 10))
    numbers = torch.rand(3, 1010, generator=chance)
    state = outer_step(outer_step(first_state(numbers[0], layout), numbers[1], 0.7, 0.9), numbers[2], 0.7, 0.9)
    # Element by element in float64 with one rounding each: what IEEE 754 promises of every processor.
    assert state.weights[17].item() == nesterov([float(row[17]) for row in numbers])


def nesterov(numbers):
    def rounded(value):
        return torch.tensor(value, dtype=torch.float64).float().double().item()

    # torch takes a number like 0.9 in the precision of the tensor that it multiplies.
    rate, keep = rounded(0.7), rounded(0.9)
    weight, momentum = numbers[0], 0.0
    for gradient in numbers[1:]:
        momentum = rounded(rounded(momentum * keep) + gradient)
        step = rounded(rounded(rounded(momentum * keep) + gradient) * rate)
        weight = rounded(weight - step)
    return weight


@given(st.lists(st.integers(0, 7), max_size=6), st.sampled_from([0.0, 0.9]), st.randoms(use_true_random=False))
def test_the_step_is_the_same_however_the_mean_is_cut_and_in_whatever_order_it_comes(cuts, momentum, chance):
    mean = torch.tensor([0.5, -1.25, 3.0, 0.1, 0.25, -0.5, -3.4])
    before = outer_step(first_state(torch.arange(7.0), LAYOUT), torch.ones(7), 0.7, 0.9)
    ends = sorted({0, 7, *cuts})
    pieces = list(itertools.pairwise(ends))
    chance.shuffle(pieces)
    step = OuterStep(before, 0.7, momentum)
    for begin, end in pieces:
        step.take(begin, mean[begin:end])
    assert torch.equal(step.state().vector, outer_step(before, mean, 0.7, momentum).vector)


WIDE = Layout(parameters=2, float_buffers=1, integer_buffers=1, lengths=(), wide_floats=3, wide_integers=3)


@given(st.lists(st.integers(0, 10), max_size=6), st.integers(-(2**50), 2**50), st.randoms(use_true_random=False))
def test_wide_numbers_take_the_mean_in_their_own_kind_however_it_is_cut(cuts, change, chance):
    begins = torch.cat(
        [
            torch.ones(4),
            split_floats(torch.tensor([1 / 3], dtype=torch.float64)),
            split_integers(torch.tensor([2**60 + 1])),
        ]
    )
    taken = split_floats(torch.tensor([2.0**-45], dtype=torch.float64)), split_integers(torch.tensor([change]))
    mean, before = torch.cat([torch.zeros(4), *taken]), first_state(begins, WIDE)
    pieces = list(itertools.pairwise(sorted({0, 10, *cuts})))
    chance.shuffle(pieces)
    step = OuterStep(before, 0.7, 0.9)
    for begin, end in pieces:
        step.take(begin, mean[begin:end])
    after = step.state().weights
    assert joined_floats(after[4:7]).item() == 1 / 3 - 2.0**-45
    assert joined_integers(after[7:]).item() == 2**60 + 1 - change
    assert torch.equal(after, minus(before.weights, mean, WIDE))


def test_a_state_is_named_by_its_bytes_and_comes_back_from_them():
    state = outer_step(first_state(torch.arange(7.0), LAYOUT), torch.ones(7), 0.7, 0.9)
    back = state_from_file(bytes(state.file), LAYOUT)
    assert back.name == state.name
    assert torch.equal(back.momentum, torch.ones(4))
    assert len(state.file) == (7 + 4) * 4


def test_without_momentum_and_at_rate_1_the_step_is_the_plain_mean():
    after = outer_step(first_state(torch.arange(7.0), LAYOUT), torch.full((7,), 0.5), 1.0, 0.0)
    assert after.weights[:6].tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]


def test_without_momentum_half_of_a_state_is_zeros_that_nobody_sends():
    moving = outer_step(first_state(torch.arange(7.0), LAYOUT), torch.ones(7), 0.7, 0.9)
    assert outer_step(moving, torch.ones(7), 1.0, 0.0).momentum.tolist() == [0.0] * 4
    layout = Layout(PIECE_BYTES // 2, 0, 0, (PIECE_BYTES // 2,))
    state = outer_step(first_state(torch.ones(layout.values), layout), torch.ones(layout.values) / 4, 1.0, 0.0)
    assert state.pieces.of_zeros() == {2, 3}


def test_a_state_of_another_model_is_refused():
    with pytest.raises(ValueError, match="43 bytes, where this model has 44"):
        state_from_file(bytes(43), LAYOUT)


def test_a_model_that_peers_could_not_hand_to_each_other_is_refused():
    check_size(Layout(2**30, 0, 0, (2**30,)))
    with pytest.raises(ValueError, match="1073741824 are the most"):
        check_size(Layout(2**30, 1, 0, (2**30, 1)))
