"""Every rule against every attack: two liars of eight, who know what all others say."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.jobs.aggregation import AGGREGATIONS, rule_for
from axonp2p.training.robust.aggregate import aggregate
from tests.laboratory.liars import ATTACKS

HONEST, LIARS, VALUES = 6, 2, 400
ROBUST = AGGREGATIONS[1:]


def said(attack, seed, spread=0.5):
    """What honest members say, and what the liars say then; honest ones differ from the truth by `spread` of it."""
    chance = torch.Generator().manual_seed(seed)
    truth = torch.randn(VALUES, generator=chance)
    rows = truth + spread * torch.randn(HONEST + LIARS, VALUES, generator=chance)
    honest = rows[:HONEST]
    return honest, [ATTACKS[attack](honest, own, chance) for own in rows[HONEST:]]


def decided(name, honest, liars, centre=None):
    rows = [*honest, *liars]
    return aggregate(
        rule_for(name, None, len(rows)), rows, [8] * len(rows), torch.zeros(VALUES) if centre is None else centre
    )


def away(found, honest):
    """How far from the honest mean, as a share of its length."""
    return float((found - honest.mean(0)).norm() / honest.mean(0).norm())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), attack=st.sampled_from(sorted(ATTACKS)), name=st.sampled_from(ROBUST))
def test_liars_move_no_robust_rule_far(seed, attack, name):
    honest, liars = said(attack, seed)
    assert away(decided(name, honest, liars), honest) < 0.5


@pytest.mark.parametrize("attack", ["sign flip", "noise", "scaled", "inner product"])
def test_they_move_the_mean_farther_than_the_rules(attack):
    honest, liars = said(attack, 1)
    plain = away(decided("mean", honest, liars), honest)
    assert plain > 0.4
    for name in ROBUST:
        assert away(decided(name, honest, liars), honest) < plain, name


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_liars_that_stay_among_the_honest_cost_no_more_than_what_these_differ_by(name):
    honest, liars = said("hidden", 1)
    spread = float((honest - honest.mean(0)).norm(dim=1).mean() / honest.mean(0).norm())
    assert 0 < away(decided(name, honest, liars), honest) < spread


@pytest.mark.parametrize("attack", ["scaled", "inner product", "noise"])
def test_liars_far_away_are_not_chosen_at_all(attack):
    honest, liars = said(attack, 2)
    assert torch.allclose(decided("multi-krum", honest, liars), honest.mean(0), atol=1e-6)


@pytest.mark.parametrize("name", ROBUST)
def test_the_largest_number_that_can_be_sent_changes_little(name):
    honest, _ = said("noise", 3)
    assert away(decided(name, honest, [torch.full((VALUES,), 2.0**101)] * LIARS), honest) < 0.5


@pytest.mark.parametrize("name", ROBUST)
def test_without_liars_a_rule_is_near_the_mean(name):
    honest, _ = said("noise", 4)
    eight = [*honest, *honest[:2]]
    assert away(decided(name, honest, eight[HONEST:]), honest) < 0.25


def test_where_the_last_exchange_led_is_no_burden_when_this_one_leads_elsewhere():
    honest, _ = said("noise", 5)
    truth = honest.mean(0)
    found = decided("centred-clipping", honest, list(honest[:2]), centre=-truth)
    assert away(found, honest) < 0.3
