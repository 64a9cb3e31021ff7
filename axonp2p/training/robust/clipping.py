"""Centred clipping, from "Learning from History for Byzantine Robust Optimization" (Karimireddy et al. 2021). Pure.

    centre <- centre + sum of weight * (row - centre) * min(1, radius / |row - centre|)

A row pulls the centre with at most `radius`, whatever it says. The first centre is what the last exchange came to:
so lies have to be told again and again, and each time cost no more than that.

The paper leaves the radius to the user. Here it is learnt: the median of the distances between centre and rows. With
fewer than half of the members lying, no more than the honest ones differ; and it shrinks with what they differ by. As
an exchange may lead far from the last one, some steps are taken, each with a radius of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from axonp2p.training.robust.distances import combined, products

STEPS = 3
"""The paper takes one where a radius fits; after three of ours the centre has come nearly where it goes."""


def centred_clipping(
    rows: Tensor, weights: Tensor, centre: Tensor, *, radius: float | None = None, steps: int = STEPS
) -> Tensor:
    """Where `centre` comes to: [members, values], [members] and [values] to [values].

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
