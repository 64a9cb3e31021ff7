"""All rules behind one door, and what a member's weight counts for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from axonp2p.jobs.aggregation import Rule
from axonp2p.training.robust.by_distance import centred_clipping, multi_krum
from axonp2p.training.robust.by_value import median, trimmed_mean


def aggregate(rule: Rule, rows: Sequence[Tensor], weights: Sequence[int], centre: Tensor) -> Tensor:
    """What members' `rows` of as many float32 values come to by a rule. `centre` is what was agreed on before.

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

    What a member did not touch is no vote for leaving it: else a row that one of ten has seen would learn a tenth.
    """
    added, counted = torch.zeros(2, len(rows[0]), dtype=torch.float64)
    for row, weight in zip(rows, weights, strict=True):
        added.add_(row, alpha=weight)
        counted.add_(row != 0, alpha=weight)
    found: Tensor = added.div_(counted.clamp_(min=1)).float()
    return found


def fair_weights(weights: Sequence[int]) -> Tensor:
    """What a rule that bears liars lets members weigh: no more than the median of them all claims. [members], float64.

    A weight is a claim too. With at most a quarter of the members lying, the liars then have less than half of all
    weight, and no more each than half of the members have.
    """
    claimed = torch.tensor(weights, dtype=torch.float64)
    return claimed.clamp(max=float(claimed.median()))
