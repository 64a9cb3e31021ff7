"""All rules behind one door, and what a member's weight counts for; the rules that look at each value by itself. Pure.

These are the weighted median, and the trimmed mean (Yin et al. 2018, ICML).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from axonp2p.jobs.aggregation import Rule
from axonp2p.training.robust.by_distance import centred_clipping, multi_krum


def aggregate(rule: Rule, rows: Sequence[Tensor], weights: Sequence[int], centre: Tensor) -> Tensor:
    """The result of members' `rows` of as many float32 values by a rule. `centre` is what was agreed on before.

    Raises ValueError when there are fewer members than the rule bears liars for.
    """
    if len(rows) < rule.least_members:
        raise ValueError(f"{rule.name} with {rule.hostile} liars needs {rule.least_members} members, not {len(rows)}")
    if rule.name == "mean":
        return mean(rows, weights)
    stacked, fair = torch.stack(list(rows)), fair_weights(weights)
    match rule.name:
        case "median":
            return median(stacked, fair)
        case "trimmed-mean":
            return trimmed_mean(stacked, fair, rule.hostile)
        case "centred-clipping":
            return centred_clipping(stacked, fair, centre)
        case "multi-krum":
            return multi_krum(stacked, fair, centre, rule.hostile)


def mean(rows: Sequence[Tensor], weights: Sequence[int]) -> Tensor:
    """The weighted mean: [values], float32.

    Added up in the order given, in float64, which holds a float32 times a number of samples without rounding: so it
    depends on nothing but the values and on whose they are. No row is copied.
    """
    added = torch.zeros(len(rows[0]), dtype=torch.float64)
    for row, weight in zip(rows, weights, strict=True):
        added.add_(row, alpha=weight)
    return added.div_(sum(weights)).float()


def mean_of_changes(rows: Sequence[Tensor], weights: Sequence[int]) -> Tensor:
    """Of each value the weighted mean of the rows that are not 0 there: [values], float32.

    A row that a member did not touch is no vote for leaving it: else a row that one of ten has seen would learn a
    tenth.
    """
    added, counted = torch.zeros(2, len(rows[0]), dtype=torch.float64)
    for row, weight in zip(rows, weights, strict=True):
        added.add_(row, alpha=weight)
        counted.add_(row != 0, alpha=weight)
    found: Tensor = added.div_(counted.clamp_(min=1)).float()
    return found


def fair_weights(weights: Sequence[int]) -> Tensor:
    """The weights by a rule that bears liars: no more than the median of them all claims. [members], float64.

    A weight is a claim too. With at most a quarter of the members lying, the liars then have less than half of all
    weight, and no more each than half of the members have.
    """
    claimed = torch.tensor(weights, dtype=torch.float64)
    return claimed.clamp(max=float(claimed.median()))


COLUMNS = 2**16
"""So many values of all members are looked at at a time: sorting takes several times the memory of what is sorted."""


def median(rows: Tensor, weights: Tensor) -> Tensor:
    """Of each value the weighted median: [members, values] and [members] to [values].

    That value below which, and above which, lies at most half of all weight. Where it is any of two, their middle: with
    equal weights this is the usual median.
    """
    return torch.cat([_median(*columns) for columns in _sorted_columns(rows, weights)])


def trimmed_mean(rows: Tensor, weights: Tensor, trim: int) -> Tensor:
    """Of each value the weighted mean without the `trim` largest and the `trim` smallest: [values].

    Members are trimmed, not weight: a liar that weighs little is still one. Raises ValueError when nobody is left.
    """
    if 2 * trim >= len(rows):
        raise ValueError(f"of {len(rows)} members {trim} at each end cannot be trimmed")
    return torch.cat([_trimmed(values, share, trim) for values, share in _sorted_columns(rows, weights)])


def _sorted_columns(rows: Tensor, weights: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Some values at a time, each value's members in order, with their weights beside them, in float64."""
    for begin in range(0, rows.shape[1], COLUMNS):
        values, places = rows[:, begin : begin + COLUMNS].sort(dim=0)
        yield values, weights.double()[places]


def _median(values: Tensor, weights: Tensor) -> Tensor:
    reached = weights.cumsum(0)
    half = reached[-1] / 2
    at = (reached < half).sum(0, keepdim=True)
    # Where exactly half lies at and below a value, the next one is as good.
    after = (at + (reached.gather(0, at) == half)).clamp(max=len(values) - 1)
    low, high = values.gather(0, at)[0].double(), values.gather(0, after)[0].double()
    return ((low + high) / 2).float()


def _trimmed(values: Tensor, weights: Tensor, trim: int) -> Tensor:
    kept = slice(trim, len(values) - trim)
    return ((values[kept].double() * weights[kept]).sum(0) / weights[kept].sum(0)).float()
