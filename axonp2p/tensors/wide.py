"""Numbers with more digits than a float32 has, as three float32 values whose sum they are. Pure.

The first is the number rounded, the second what is missing, the third what is then still missing: 72 binary digits,
where float64 has 53 and int64 has 64. Sums and means of such triples, one value at a time, are triples of the sums and
means; so whoever exchanges float32 values exchanges these too, and even a median or a liar's rule is off by no more
than a float32 would be. A value to be taken off (`less`) is taken off in the number's own kind, so nothing is rounded
there.

All triples of a vector stand side by side: first the rounded numbers of all, then all second values, then all third.
float64 loses what is below 1e-45; where there is no room for a number at all (1e39, infinity) `holds` says so.
"""

from __future__ import annotations

import torch
from torch import Tensor

LANES = 3
_MOST = float(2**63 - 2**39)
"""The largest float32 that an int64 holds."""


def split_floats(numbers: Tensor) -> Tensor:
    """A flat float64 vector as three times as many float32 values."""
    high = numbers.float()
    rest = numbers - high
    middle = rest.float()
    return torch.cat([high, middle, (rest - middle).float()])


def joined_floats(lanes: Tensor) -> Tensor:
    """The float64 numbers that these values stand for."""
    high, middle, low = lanes.view(LANES, len(lanes) // LANES).double()
    return torch.where(middle == 0, high, high + middle + low)  # added to a zero, -0.0 would be lost


def split_integers(numbers: Tensor) -> Tensor:
    """A flat int64 vector as three times as many float32 values."""
    high = numbers.float().clamp_(max=_MOST)
    rest = numbers - high.long()
    middle = rest.float()
    return torch.cat([high, middle, (rest - middle.long()).float()])


def joined_integers(lanes: Tensor) -> Tensor:
    """The int64 numbers that these values stand for; rounded, when they are a mean."""
    parts = lanes.nan_to_num().clamp(-(2.0**63), _MOST).view(LANES, len(lanes) // LANES)
    whole = parts.floor()
    return whole.long().sum(0) + (parts - whole).sum(0, dtype=torch.float64).round_().long()


def less(lanes: Tensor, taken: Tensor, floats: int) -> Tensor:
    """`lanes` less `taken`: the first `floats` numbers of each are float64, the others int64."""
    border = LANES * floats
    return torch.cat(
        [
            split_floats(joined_floats(lanes[:border]) - joined_floats(taken[:border])),
            split_integers(joined_integers(lanes[border:]) - joined_integers(taken[border:])),
        ]
    )


def holds(numbers: Tensor) -> bool:
    """Whether a float64 tensor comes back from its values to the bit."""
    flat = numbers.reshape(-1)
    return torch.equal(joined_floats(split_floats(flat)).view(torch.int64), flat.view(torch.int64))
