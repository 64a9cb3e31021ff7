from __future__ import annotations

import pytest
import torch

from axonp2p.tensors.levels import EXPONENTIAL, LARGEST, LARGEST_SCALE, NORMAL, Integers

CODERS = [Integers(), *NORMAL.values(), *EXPONENTIAL.values()]


def code(levels, rows):
    """The scales, and what comes out."""
    scales, decoded = torch.empty(len(rows), 1, dtype=torch.bfloat16), torch.empty_like(rows)
    packed = levels.encode(rows, scales, decoded)
    again = torch.empty_like(rows)
    levels.decode(packed, scales.float(), again)
    assert torch.equal(again, decoded)
    return scales.float(), decoded


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("family", [NORMAL, EXPONENTIAL])
def test_borders_lie_midway_between_heights_as_lloyd_and_max_say(bits, family):
    heights, borders = torch.tensor(family[bits].heights), torch.tensor(family[bits].borders)
    assert family[bits].bits == bits
    torch.testing.assert_close((heights[1:] + heights[:-1]) / 2, borders, atol=2e-4, rtol=0)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_each_height_is_the_mean_of_what_falls_to_it(bits):
    """The other condition of Lloyd and Max, on a sample."""
    torch.manual_seed(0)
    for family, sample in ((NORMAL, torch.randn(500_000)), (EXPONENTIAL, torch.empty(500_000).exponential_())):
        magnitudes = sample.abs() / sample.abs().mean()
        which = torch.bucketize(magnitudes, torch.tensor(family[bits].borders))
        means = [magnitudes[which == height].mean() for height in range(2 ** (bits - 1))]
        torch.testing.assert_close(torch.tensor(means), torch.tensor(family[bits].heights), rtol=0.02, atol=0)


@pytest.mark.parametrize(("bits", "left"), [(8, 1e-4), (4, 0.0100), (2, 0.120), (1, 0.366)])
def test_as_much_is_lost_of_normal_values_as_theory_says(bits, left):
    """Max's table: 0.00950, 0.1175 and 0.3634 of the variance; the scale of each block loses or gains little."""
    torch.manual_seed(0)
    rows = torch.randn(64, 256)
    _, decoded = code(Integers() if bits == 8 else NORMAL[bits], rows)
    assert float((rows - decoded).square().sum() / rows.square().sum()) < left


def test_one_bit_is_the_sign_times_the_mean_magnitude():
    _, decoded = code(NORMAL[1], torch.tensor([[1.0, -2.0, 3.0, -6.0]]))
    assert decoded.tolist() == [[3, -3, 3, -3]]


def test_each_block_has_a_scale_of_its_own():
    scales, decoded = code(Integers(), torch.tensor([[127.0, 1.0, -127.0], [127e-9, 0.0, -1e-9], [0.0, 0.0, -0.0]]))
    assert decoded[0].tolist() == [127, 1, -127]
    torch.testing.assert_close(decoded[1], torch.tensor([127e-9, 0.0, -1e-9]), rtol=0.01, atol=0)
    assert (decoded[2] == 0).all()
    assert scales[1] < 1e-8


@pytest.mark.parametrize("levels", CODERS)
@pytest.mark.parametrize("value", [LARGEST, 1e-30, 1e-40, 1.4e-45])
def test_from_denormal_to_largest(levels, value):
    rows = torch.full((2, 256), value)
    rows[1, 1:] = 0
    scales, decoded = code(levels, rows)
    assert (scales <= LARGEST_SCALE).all()
    assert torch.isfinite(decoded).all()
    assert ((rows - decoded).double().norm(dim=1) <= rows.double().norm(dim=1) * (1 + 1e-6)).all()
    if value >= 1e-30:
        torch.testing.assert_close(decoded[0], rows[0], rtol=0.01, atol=0)
