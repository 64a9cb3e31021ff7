"""How far rows lie from each other, and sums of them. Pure.

Rules that look at whole rows need nothing of them but the products of each with each. These take one pass over all
values; everything after it is arithmetic on [members, members] numbers, whatever the length of a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

COLUMNS = 2**16
"""So many values at a time in float64."""


def products(rows: Tensor, origin: Tensor) -> Tensor:
    """The product of each row with each, both less `origin`: [members, values] and [values] to [members, members].

    In float64. The nearer `origin` is to most rows, the less is lost where one is huge.
    """
    found = torch.zeros(len(rows), len(rows), dtype=torch.float64)
    for begin in range(0, rows.shape[1], COLUMNS):
        part = slice(begin, begin + COLUMNS)
        away = rows[:, part].double() - origin[part].double()
        found += away @ away.T
    return found


def squared_distances(products: Tensor) -> Tensor:
    """How far each row is from each, squared: [members, members]."""
    lengths = products.diagonal()
    return (lengths[:, None] + lengths[None, :] - 2 * products).clamp(min=0)


def combined(rows: Tensor, origin: Tensor, shares: Tensor) -> Tensor:
    """`origin` and so much of each row's way from it: [values], float32. Rows with a share of 0 do not matter."""
    total = float(shares.sum())
    result = origin.double() * (1 - total)
    for row, share in zip(rows, shares.tolist(), strict=True):
        if share:
            result.add_(row, alpha=share)
    return result.float()
