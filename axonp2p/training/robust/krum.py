"""Multi-Krum, from "Machine Learning with Adversaries" (Blanchard et al., NeurIPS 2017). Pure.

Of n members of which f may lie, each has n - f - 2 nearest others; its score is the sum of their squared distances. The
n - f with the least scores are averaged: m = n - f, as in the paper's own experiments.
"""

from __future__ import annotations

import torch
from torch import Tensor

from axonp2p.training.robust.distances import combined, products, squared_distances


def multi_krum(rows: Tensor, weights: Tensor, origin: Tensor, hostile: int) -> Tensor:
    """The weighted mean of the rows that were chosen: [members, values] and [members] to [values].

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
