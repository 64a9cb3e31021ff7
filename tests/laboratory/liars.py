"""What hostile members say of a difference instead of the truth: five attacks of the literature, one worse. Pure.

Each takes what the honest members say ([honest, values]) and a member's own row, which it would say if it were honest.
The last three know all honest rows, and the liars all say the same: the worst that the papers assume.

    sign flip                   the own row, backwards
    noise                       nothing but noise, some times as long as the own row
    scaled                      the own row backwards, many times as long
    little is enough            the honest mean, less some deviations of each value (Baruch et al., NeurIPS 2019)
    inner product manipulation  the honest mean, backwards, so long that the mean of all turns (Xie et al., UAI 2019)
    hidden                      the same, but no farther from the honest mean than honest members are: nothing tells
                                such liars from the others, so no rule bears them well where members differ much
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Attack = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""The honest rows, the own row, and chance: what the liar says."""

LOUD = 10.0
"""How many times as long noise is as the truth."""
FAR = 100.0
"""How many times as long what is scaled is."""
LITTLE = 1.5
"""Deviations: so that what is said is no farther from the mean than honest rows are. The paper's own number for two
liars among eight is 0, which harms nobody."""
TURNED = 4.0
"""How long the turned mean is: two such liars among eight turn the mean of all."""


def sign_flip(honest: Tensor, own: Tensor, chance: torch.Generator) -> Tensor:
    return -own


def noise(honest: Tensor, own: Tensor, chance: torch.Generator) -> Tensor:
    loud = torch.randn(own.shape, generator=chance)
    return loud * float(LOUD * own.norm() / loud.norm())


def scaled(honest: Tensor, own: Tensor, chance: torch.Generator) -> Tensor:
    return -FAR * own


def little_is_enough(honest: Tensor, own: Tensor, chance: torch.Generator) -> Tensor:
    return honest.mean(0) - LITTLE * honest.std(0)


def inner_product(honest: Tensor, own: Tensor, chance: torch.Generator) -> Tensor:
    return -TURNED * honest.mean(0)


def hidden(honest: Tensor, own: Tensor, chance: torch.Generator) -> Tensor:
    mean = honest.mean(0)
    return mean * float(1 - (honest - mean).norm(dim=1).mean() / mean.norm())


ATTACKS: dict[str, Attack] = {
    "sign flip": sign_flip,
    "noise": noise,
    "scaled": scaled,
    "little is enough": little_is_enough,
    "inner product": inner_product,
    "hidden": hidden,
}
