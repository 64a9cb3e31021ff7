from __future__ import annotations

import pytest
import torch

from axonp2p.training.exchange.leftover import Leftover
from axonp2p.training.exchange.past import Past

VALUES, PARAMETERS = 6, 4


def leftover(keep=1.0, momentum_correction=0.0, clip=0.0):
    return Leftover(VALUES, PARAMETERS, keep, momentum_correction, clip)


def vector(*values):
    return torch.tensor(values, dtype=torch.float32)


def difference():
    return vector(1, -2, 3, 0, 10, 20)


def test_at_first_the_difference_goes_out_as_it_is():
    assert torch.equal(leftover().take(difference(), 4), difference())


def test_what_was_left_is_added_to_the_next_but_for_buffers():
    held = leftover()
    held.take(difference(), 4)
    held.settle(vector(0.5, 0, 1, 2, 0, 0), Past())
    assert torch.equal(held.take(difference(), 4), vector(1.5, -2, 4, 2, 10, 20))


def test_only_a_part_of_it_is_kept_when_told_so():
    held = leftover(keep=0.5)
    held.take(difference(), 4)
    held.settle(vector(1, 0, 0, 4, 0, 0), Past())
    assert torch.equal(held.take(difference(), 4), vector(1.5, -2, 3, 2, 10, 20))


def test_a_copy_is_what_a_redone_round_goes_back_to():
    held = leftover(momentum_correction=0.9)
    held.take(difference(), 4)
    held.settle(vector(1, -2, 0, 0, 0, 0), Past())
    accepted = held.copy()
    first = held.take(difference(), 4)
    expected = first.clone()
    held.settle(first.mul_(7), Past())
    assert torch.equal(accepted.copy().take(difference(), 4), expected)
    assert torch.equal(accepted.take(difference(), 4), expected)


def test_each_is_clipped_to_its_part_of_the_norm_of_a_mean():
    sending = leftover(clip=3.0).take(vector(3, 0, 4, 0, 10, 20), members=4)
    assert float(sending[:PARAMETERS].norm()) == pytest.approx(1.5)
    assert torch.equal(sending[PARAMETERS:], vector(10, 20))
    small = vector(0.3, 0, 0.4, 0, 10, 20)
    assert torch.equal(leftover(clip=3.0).take(small, members=4), small)
    assert not leftover(clip=3.0).take(torch.zeros(VALUES), members=4).any()


def test_what_was_left_is_not_clipped_again():
    held = leftover(clip=1.0)
    held.take(difference(), 1)
    held.settle(vector(0, 0, 0, 5, 0, 0), Past())
    assert float(held.take(torch.zeros(VALUES), 1)[3]) == 5


def test_momentum_gathers_until_it_is_sent():
    """u = m u + g; v = v + u; both are forgotten where v goes out (Lin et al., algorithm 1)."""
    held = leftover(momentum_correction=0.5)
    ones = vector(1, 1, 1, 1, 0, 0)
    sending = held.take(ones.clone(), 4)
    assert torch.equal(sending, ones)
    held.settle(vector(1, 1, 0, 0, 0, 0), Past())  # the first two are held back
    sending = held.take(ones.clone(), 4)
    assert torch.equal(sending, vector(2.5, 2.5, 1, 1, 0, 0))
    held.settle(vector(2.5, 0, 0, 1, 0, 0), Past())
    assert torch.equal(held.take(ones, 4), vector(2.5 + 1.75, 1, 1, 1 + 1.5, 0, 0))
