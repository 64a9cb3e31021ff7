"""Rules that look at each value by itself: the weighted median, and the trimmed mean (Yin et al. 2018, ICML). Pure."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

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
