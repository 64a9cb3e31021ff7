"""How much a member lengthens its steps: not where all agree, up to the root of their number where all is noise."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn, optim

from axonp2p.training.trainer.step_scale import LEAST_SEEN, StepScale, averaged_by

MEMBERS = 4
VALUES = 2000


def after(exchanges: int, signal: float, noise: float, averaged: float = 1.0) -> StepScale:
    """What the first of four members has seen whose differences are a common signal and noise of their own."""
    chance = torch.Generator().manual_seed(1)
    scale = StepScale(averaged)
    for _ in range(exchanges):
        all_of_them = signal + noise * torch.randn(MEMBERS, VALUES, generator=chance)
        scale = scale.after(all_of_them[0], all_of_them.mean(0))
    return scale


def factors(scale: StepScale, members: int = MEMBERS) -> Tensor:
    found = scale.factors(members)
    assert found is not None
    return found


def test_little_is_believed_before_some_exchanges_were_seen() -> None:
    assert after(LEAST_SEEN - 1, 1.0, 1.0).factors(MEMBERS) is None
    assert after(LEAST_SEEN, 1.0, 1.0).factors(MEMBERS) is not None


def test_who_is_alone_keeps_its_steps() -> None:
    assert after(10, 1.0, 1.0).factors(1) is None


def test_where_all_agree_nothing_changes() -> None:
    torch.testing.assert_close(factors(after(10, 1.0, 0.0)), torch.ones(VALUES), rtol=0, atol=0.01)


def test_where_all_is_noise_steps_grow_by_the_root_of_the_number_of_members() -> None:
    assert 1.7 < float(factors(after(20, 0.0, 1.0)).median()) <= 2.0


def test_the_longer_momentum_averages_the_more_noise_stands_behind_what_is_left_of_it() -> None:
    plain, smoothed = factors(after(20, 1.0, 1.0)), factors(after(20, 1.0, 1.0, averaged=19))
    assert float(smoothed.median()) > float(plain.median()) > 1.0


def test_values_that_never_move_keep_their_steps() -> None:
    nothing = torch.zeros(8)
    scale = StepScale(1.0)
    for _ in range(LEAST_SEEN):
        scale = scale.after(nothing, nothing)
    torch.testing.assert_close(factors(scale), torch.ones(8), rtol=0, atol=0.01)


def test_what_was_seen_before_is_not_changed_by_what_is_seen_after() -> None:
    accepted = after(5, 1.0, 1.0)
    before = factors(accepted).clone()
    accepted.after(torch.full([VALUES], 9.0), torch.zeros(VALUES))
    assert torch.equal(factors(accepted), before)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), st.integers(2, 64), st.floats(1, 100))
def test_factors_are_always_numbers_between_one_and_the_root(
    values: list[float], members: int, averaged: float
) -> None:
    own, mean = torch.tensor(values), torch.tensor(list(reversed(values)))
    scale = StepScale(averaged)
    for _ in range(LEAST_SEEN):
        scale = scale.after(own, mean)
    found = factors(scale, members)
    assert bool((found >= 1.0 - 1e-6).all())
    assert bool((found <= members**0.5 + 1e-4).all())


def test_only_optimisers_that_divide_by_their_gradients_need_it() -> None:
    weights = nn.Linear(2, 2).parameters
    assert averaged_by([optim.AdamW(weights(), betas=(0.9, 0.95))]) == pytest.approx(19)
    assert averaged_by([optim.RMSprop(weights())]) == 1.0
    assert averaged_by([optim.SGD(weights(), lr=0.1, momentum=0.9)]) is None
