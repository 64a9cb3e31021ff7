"""What training loses by few exchanges and by few bits, as it was measured; and the outer step that fits. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from axonp2p.tensors.coding import Bits

BITS: tuple[Bits, ...] = (32, 16, 8, 4, 2, 1)

_FEW_EXCHANGES = {
    1: 0.010, 2: 0.015, 3: 0.020, 4: 0.025, 6: 0.035, 8: 0.043, 12: 0.058, 16: 0.071, 24: 0.090, 32: 0.105,
    50: 0.130, 100: 0.180, 200: 0.250, 500: 0.380,
}  # fmt: skip
_FEW_BITS: Mapping[Bits, float] = {32: 0.0, 16: 0.0, 8: 0.0, 4: 0.001, 2: 0.004, 1: 0.034}

LOSS_OF: Mapping[tuple[int, Bits], float] = {
    (every, bits): exchanges + few for every, exchanges in _FEW_EXCHANGES.items() for bits, few in _FEW_BITS.items()
}
"""How far the held-out loss stays above that of a dense exchange every step, at equal samples, as a share of it: by
local steps between two exchanges, and bits a value with error feedback. Four members, 1 M parameters, examples/text,
240 steps (`scripts/bench/quality`; docs/benchmarks.md says which of these were measured). The order of the pairs is
what matters: the shares themselves grow with the steps that were taken."""

LATE = 0.035
"""What is lost in addition when each result comes one leg late."""

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
