"""The loss of training by few exchanges, few bits and late results, as measured; and the outer step that fits. Pure.

`scripts/bench/quality` measures it: dense data-parallel training has learnt so much (from the held-out loss of the
first weights to that of its last ones), and a share of that is missing where members exchange otherwise. The numbers
are rounded from rows of `examples/text` and `examples/digits`, in two sizes each, AdamW and Muon, and from longer
trainings, where few exchanges and late results cost more (docs/decisions/0062 has the rows). The order of the pairs is
what matters: the shares themselves grow with the steps that were taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from axonp2p.tensors.coding import Bits

BITS: tuple[Bits, ...] = (32, 16, 8, 4, 2, 1)

FEW_EXCHANGES: Mapping[int, float] = {1: 0.004, 2: 0.007, 4: 0.014, 8: 0.023, 24: 0.042}
"""The part missing, by local steps between two exchanges of 32 bits."""
FEW_BITS: Mapping[Bits, float] = {32: 0.0, 16: 0.0, 8: 0.0, 4: 0.002, 2: 0.013, 1: 0.030}
"""The part missing in addition with error feedback, by bits a value."""
LATE: Mapping[int, float] = {1: 0.001, 2: 0.003, 4: 0.030, 8: 0.030, 24: 0.030}
"""The part missing in addition when each result comes one leg late."""


def loss_of(every: int, bits: Bits, *, late: bool = False) -> float:
    """The part missing, for any number of local steps."""
    return _between(FEW_EXCHANGES, every) + FEW_BITS[bits] + (_between(LATE, every) if late else 0.0)


def _between(known: Mapping[int, float], every: int) -> float:
    """Along straight lines over the logarithm of the local steps, the last of which goes on beyond what is known."""
    steps = sorted(known)
    low, high = next((pair for pair in pairwise(steps) if every < pair[1]), (steps[-2], steps[-1]))
    slope = (known[high] - known[low]) / math.log(high / low)
    return known[low] + slope * math.log(every / low)


LONG_LEG = 24
"""From so many local steps on outer momentum helps, as in DiLoCo; with fewer it does harm."""
FIRST_EXCHANGES = 50
"""After so many: before, momentum does harm with legs of any length (docs/decisions/0062)."""


def outer_step_for(every: int, past: int, *, dense: bool) -> tuple[float, float]:
    """Outer learning rate and Nesterov momentum, after so many exchanges: DiLoCo's for long legs whose values all
    travel, else a plain mean.

    Douillard et al. 2023 (DiLoCo) and Sarfi et al. 2025 (SparseLoCo: error feedback takes the place of momentum).
    """
    return (0.7, 0.9) if every >= LONG_LEG and past >= FIRST_EXCHANGES and dense else (1.0, 0.0)
