from __future__ import annotations

import torch

from axonp2p.training.exchange.error_feedback import ErrorFeedback, Past

VALUES, PARAMETERS = 6, 4


def leftover():
    return ErrorFeedback(VALUES, PARAMETERS)


def vector(*values):
    return torch.tensor(values, dtype=torch.float32)


def difference():
    return vector(1, -2, 3, 0, 10, 20)


def test_at_first_the_difference_goes_out_as_it_is():
    assert torch.equal(leftover().take(difference()), difference())


def test_what_was_left_is_added_to_the_next_but_for_buffers():
    held = leftover()
    held.take(difference())
    held.settle(vector(0.5, 0, 1, 2, 0, 0), Past())
    assert torch.equal(held.take(difference()), vector(1.5, -2, 4, 2, 10, 20))


def test_a_copy_is_what_a_redone_round_goes_back_to():
    held = leftover()
    held.take(difference())
    held.settle(vector(1, -2, 0, 0, 0, 0), Past())
    accepted = held.copy()
    first = held.take(difference())
    expected = first.clone()
    held.settle(first.mul_(7), Past())
    assert torch.equal(accepted.copy().take(difference()), expected)
    assert torch.equal(accepted.take(difference()), expected)
