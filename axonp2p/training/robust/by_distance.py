"""Rules that look at whole rows: Multi-Krum and centred clipping. Pure.

They need nothing of the rows but the products of each with each. These take one pass over all values; everything after
it is arithmetic on [members, members] numbers, whatever the length of a row.
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


def multi_krum(rows: Tensor, weights: Tensor, origin: Tensor, hostile: int) -> Tensor:
    """The weighted mean of the rows that were chosen: [members, values] and [members] to [values].

    From "Machine Learning with Adversaries" (Blanchard et al., NeurIPS 2017). Of n members of which f may lie, each has
    n - f - 2 nearest others; its score is the sum of their squared distances. The n - f with the least scores are
    averaged: m = n - f, as in the paper's own experiments.

    `origin` is any row near most of them: distances are taken from there, so that none is lost in rounding.
    """
    chosen = chosen_by_krum(squared_distances(products(rows, origin)), hostile)
    shares = torch.zeros(len(rows), dtype=torch.float64)
    shares[chosen] = weights.double()[chosen] / weights.double()[chosen].sum()
    return combined(rows, origin, shares)


def chosen_by_krum(distances: Tensor, hostile: int) -> list[int]:
    """Which members are averaged, growing; `distances` between each and each, squared: [members, members].

    Of equal scores the first ones. Raises ValueError when so many liars are too many: 2 f + 2 < n has to hold.
    """
    members = len(distances)
    if hostile and 2 * hostile + 2 >= members:
        raise ValueError(f"of {members} members {hostile} liars are too many")
    if not hostile:
        return list(range(members))
    near = distances.sort(dim=1).values[:, 1 : members - hostile - 1]
    return sorted(near.sum(1).argsort(stable=True)[: members - hostile].tolist())


STEPS = 3
"""The paper takes one where a radius fits; after three of ours the centre has come nearly where it goes."""


def centred_clipping(
    rows: Tensor, weights: Tensor, centre: Tensor, *, radius: float | None = None, steps: int = STEPS
) -> Tensor:
    """Where `centre` comes to: [members, values], [members] and [values] to [values].

    From "Learning from History for Byzantine Robust Optimization" (Karimireddy et al. 2021):

        centre <- centre + sum of weight * (row - centre) * min(1, radius / |row - centre|)

    A row pulls the centre with at most `radius`, whatever it says. The first centre is what the last exchange came to:
    so lies have to be told again and again, and each time cost no more than that.

    The paper leaves the radius to the user. Here it is learnt: the median of the distances between centre and rows.
    With fewer than half of the members lying, no more than the honest ones differ; and it shrinks with what they differ
    by. As an exchange may lead far from the last one, some steps are taken, each with a radius of its own.

    `radius`: how far a row may pull it in each step; None: the median of the rows' distances from it.
    """
    along = products(rows, centre)
    pull = weights.double() / weights.double().sum()
    shares = torch.zeros(len(rows), dtype=torch.float64)
    for _ in range(steps):
        away = _distances(along, shares)
        reach = float(away.median()) if radius is None else radius
        # No row is farther than 0: then it is where the centre is, and pulls nowhere.
        clipped = pull * (reach / away.clamp(min=torch.finfo(torch.float64).tiny)).clamp(max=1)
        shares = shares * (1 - clipped.sum()) + clipped
    return combined(rows, centre, shares)


def _distances(along: Tensor, shares: Tensor) -> Tensor:
    """From each row to the centre, which has come to so much of each row's way: all from the rows' products."""
    towards = along @ shares
    return (along.diagonal() - 2 * towards + shares @ towards).clamp(min=0).sqrt()
