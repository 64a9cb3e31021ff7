"""What training loses by few exchanges and by few bits, as it was measured; and the outer step that fits. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from axonp2p.tensors.coding import Bits

BITS: tuple[Bits, ...] = (32, 16, 8, 4, 2, 1)

_FEW_EXCHANGES = {
    1: 0.100, 2: 0.105, 3: 0.120, 4: 0.130, 6: 0.135, 8: 0.140, 12: 0.150, 16: 0.160, 24: 0.175, 32: 0.190,
    50: 0.220, 100: 0.280, 200: 0.350, 500: 0.480,
}  # fmt: skip
_FEW_BITS: Mapping[Bits, float] = {32: 0.0, 16: 0.0, 8: 0.0, 4: 0.001, 2: 0.005, 1: 0.028}

LOSS_OF: Mapping[tuple[int, Bits], float] = {
    (every, bits): exchanges + few for every, exchanges in _FEW_EXCHANGES.items() for bits, few in _FEW_BITS.items()
}
"""How far the held-out loss stays above that of a dense exchange every step, at equal samples, as a share of it: by
local steps between two exchanges, and bits a value with error feedback. Four members, 1 M parameters, examples/text."""

LEGS = sorted({every for every, _ in LOSS_OF})
"""Local steps between two exchanges that were measured."""


def loss_of(every: int, bits: Bits) -> float:
    """The same for any number of local steps: along straight lines over its logarithm between those measured."""
    if every >= LEGS[-1]:
        return LOSS_OF[LEGS[-1], bits] * (1 + math.log(every / LEGS[-1]))
    below, above = next((low, high) for low, high in pairwise(LEGS) if low <= every < high)
    part = math.log(every / below) / math.log(above / below)
    return (1 - part) * LOSS_OF[below, bits] + part * LOSS_OF[above, bits]


LONG_LEG = 24
"""From so many local steps on outer momentum helps, as in DiLoCo; with fewer it does harm."""


def outer_step_for(every: int, *, dense: bool) -> tuple[float, float]:
    """Outer learning rate and Nesterov momentum: DiLoCo's for long legs whose values all travel, else a plain mean.

    Douillard et al. 2023 (DiLoCo) and Sarfi et al. 2025 (SparseLoCo: error feedback takes the place of momentum).
    """
    return (0.7, 0.9) if every >= LONG_LEG and dense else (1.0, 0.0)
