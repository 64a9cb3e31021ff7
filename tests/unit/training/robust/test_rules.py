"""Each rule against its definition, written as slowly and plainly as can be."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonp2p.jobs.aggregation import AGGREGATIONS, Rule, rule_for
from axonp2p.training.robust import aggregate as rules
from axonp2p.training.robust import by_distance
from axonp2p.training.robust.aggregate import aggregate, fair_weights, mean, median, trimmed_mean
from axonp2p.training.robust.by_distance import centred_clipping, chosen_by_krum, multi_krum

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, width=32))


@st.composite
def tables(draw, least=1):
    """Rows and weights of some members."""
    members, values = draw(st.integers(least, 9)), draw(st.integers(1, 12))
    row = st.lists(NUMBERS, min_size=values, max_size=values)
    rows = torch.tensor(draw(st.lists(row, min_size=members, max_size=members)), dtype=torch.float32)
    weights = draw(st.lists(st.integers(1, 5), min_size=members, max_size=members))
    return rows, torch.tensor(weights, dtype=torch.float64)


def plain_median(values, weights):
    """Every value (and every middle of two) below and above which lies at most half; the middle of these."""
    half = sum(weights) / 2
    fitting = [
        value
        for value in values
        if sum(weight for other, weight in zip(values, weights, strict=True) if other < value) <= half
        and sum(weight for other, weight in zip(values, weights, strict=True) if other > value) <= half
    ]
    return (min(fitting) + max(fitting)) / 2


def plain_trimmed(values, weights, trim):
    kept = sorted(zip(values, weights, strict=True))[trim : len(values) - trim]
    # Which of equal values is trimmed is not told, so weights are only tested where all values differ.
    return sum(value * weight for value, weight in kept) / sum(weight for _, weight in kept)


@settings(deadline=None)
@given(table=tables())
def test_the_median_of_each_value(table):
    rows, weights = table
    expected = [plain_median(column.tolist(), weights.tolist()) for column in rows.T]
    assert median(rows, weights).tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(table=tables())
def test_with_equal_weights_it_is_the_usual_median(table):
    rows, _ = table
    expected = [statistics.median(column.tolist()) for column in rows.T]
    found = median(rows, torch.full((len(rows),), 3.0))
    assert found.tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(table=tables(), data=st.data())
def test_the_trimmed_mean_of_each_value(table, data):
    rows, weights = table
    trim = data.draw(st.integers(0, (len(rows) - 1) // 2))
    found = trimmed_mean(rows, weights, trim)
    for value, column in zip(found.tolist(), rows.T.tolist(), strict=True):
        if len(set(column)) == len(column):
            assert value == pytest.approx(plain_trimmed(column, weights.tolist(), trim), rel=1e-5, abs=1e-5)
        kept = sorted(column)[trim : len(column) - trim]
        assert kept[0] - 1e-3 <= value <= kept[-1] + 1e-3 or math.isclose(value, kept[0], rel_tol=1e-5)


def test_trimming_everybody_is_refused():
    with pytest.raises(ValueError, match="4 members 2 at each end"):
        trimmed_mean(torch.zeros(4, 1), torch.ones(4), 2)


def plain_clipping(rows, weights, centre, radius, steps):
    centre = centre.double()
    for _ in range(steps):
        away = [float((row.double() - centre).norm()) for row in rows]
        reach = radius if radius is not None else sorted(away)[(len(away) - 1) // 2]
        pulls = [
            weight * min(1.0, reach / length) * (row.double() - centre) if length else torch.zeros_like(centre)
            for row, length, weight in zip(rows, away, weights.tolist(), strict=True)
        ]
        centre = centre + sum(pulls) / float(weights.sum())
    return centre.float()


@settings(deadline=None)
@given(table=tables(), steps=st.integers(1, 4), learnt=st.booleans(), data=st.data())
def test_centred_clipping_as_the_paper_writes_it(table, steps, learnt, data):
    rows, weights = table
    centre = torch.tensor(data.draw(st.lists(NUMBERS, min_size=rows.shape[1], max_size=rows.shape[1])))
    radius = None if learnt else data.draw(st.floats(0.125, 1e6))
    found = centred_clipping(rows, weights, centre, radius=radius, steps=steps)
    expected = plain_clipping(rows, weights, centre, radius, steps)
    size = float(max(rows.abs().max(), centre.abs().max(), torch.tensor(1.0)))
    assert (found - expected).abs().max() <= 1e-4 * size


def plain_krum(rows, hostile):
    members = len(rows)
    scores = []
    for one in range(members):
        away = sorted(
            float((rows[one].double() - rows[other].double()).square().sum())
            for other in range(members)
            if other != one
        )
        scores.append(sum(away[: members - hostile - 2]))
    return scores


@settings(deadline=None)
@given(table=tables(least=5))
def test_multi_krum_chooses_those_with_the_nearest_others(table):
    rows, weights = table
    hostile = (len(rows) - 3) // 2
    origin = torch.zeros(rows.shape[1])
    chosen = chosen_by_krum(by_distance.squared_distances(by_distance.products(rows, origin)), hostile)
    scores = plain_krum(rows, hostile)
    assert len(chosen) == len(rows) - hostile
    rest = set(range(len(rows))) - set(chosen)
    slack = 1e-6 * max(1.0, *scores)
    assert max(scores[one] for one in chosen) <= min(scores[one] for one in rest) + slack
    expected = (rows[chosen].double() * weights[chosen, None]).sum(0) / weights[chosen].sum()
    found = multi_krum(rows, weights, origin, hostile)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-4)


def test_krum_refuses_more_liars_than_the_paper_allows():
    with pytest.raises(ValueError, match="6 members 2 liars"):
        chosen_by_krum(torch.zeros(6, 6), 2)


def test_nobody_is_chosen_away_when_nobody_may_lie():
    assert chosen_by_krum(torch.zeros(2, 2), 0) == [0, 1]


@settings(deadline=None)
@given(table=tables(), name=st.sampled_from(AGGREGATIONS))
def test_where_all_agree_every_rule_says_what_they_say(table, name):
    rows, weights = table
    same = [rows[0]] * len(rows)
    found = aggregate(rule_for(name, None, len(rows)), same, weights.int().tolist(), torch.zeros(rows.shape[1]))
    assert found.tolist() == pytest.approx(rows[0].tolist(), rel=1e-5, abs=1e-4)


@settings(deadline=None)
@given(table=tables(), name=st.sampled_from(AGGREGATIONS), seed=st.integers(0, 99))
def test_it_does_not_matter_who_is_who(table, name, seed):
    rows, weights = table
    if name in ("multi-krum", "centred-clipping", "trimmed-mean"):
        weights = torch.ones(len(rows))  # of those that tie, one is chosen, and may weigh more than another
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    rule, nowhere = rule_for(name, 0 if name == "multi-krum" else None, len(rows)), torch.zeros(rows.shape[1])
    one = aggregate(rule, list(rows), weights.int().tolist(), nowhere)
    other = aggregate(rule, list(rows[order]), weights[order].int().tolist(), nowhere)
    assert one.tolist() == pytest.approx(other.tolist(), rel=1e-4, abs=1e-2)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_many_values_are_looked_at_in_portions_that_do_not_show(name, monkeypatch):
    rows = list(torch.randn(8, 100, generator=torch.Generator().manual_seed(1)))
    rule, nowhere = rule_for(name, None, 8), torch.zeros(100)
    whole = aggregate(rule, rows, [4] * 8, nowhere)
    monkeypatch.setattr(rules, "COLUMNS", 7)
    monkeypatch.setattr(by_distance, "COLUMNS", 7)
    assert torch.allclose(aggregate(rule, rows, [4] * 8, nowhere), whole, atol=1e-6)


def test_the_mean_is_weighted_by_what_members_claim():
    assert mean([torch.tensor([1.0]), torch.tensor([4.0])], [2, 1]).tolist() == [2.0]


def test_elsewhere_nobody_weighs_more_than_the_median_of_all_claims():
    assert fair_weights([3, 1, 1000, 4, 1000]).tolist() == [3, 1, 4, 4, 4]


def test_claims_alone_turn_no_rule():
    honest, liars = [torch.tensor([1.0, -2.0])] * 6, [torch.tensor([-50.0, 90.0])] * 2
    for name in AGGREGATIONS[1:]:
        found = aggregate(rule_for(name, None, 8), [*honest, *liars], [10] * 6 + [10**6] * 2, torch.zeros(2))
        assert (found - honest[0]).norm() < 1.5, name


def test_too_few_members_are_refused():
    with pytest.raises(ValueError, match="median with 2 liars needs 5 members, not 4"):
        aggregate(Rule("median", 2), [torch.zeros(1)] * 4, [1] * 4, torch.zeros(1))
