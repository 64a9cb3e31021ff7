"""What a member holds back from one exchange to the next, and what it does to a difference before that goes out.

Error feedback: what was not sent is added to the next difference (Seide et al. 2014; Karimireddy et al., arXiv
1901.09847), so it comes later and is not lost. Clipping and momentum correction are those of Deep Gradient Compression
(Lin et al., arXiv 1712.01887, section 3), with a difference in the place of its gradient: each member clips its own to
the norm allowed for the mean over the root of their number, then lets it gather momentum before anything is held back,
and forgets the momentum of what was sent, which would be out of date. Buffers take no part in any of it.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from axonp2p.training.exchange.past import Past

HELD_BACK = 1e-3
"""A value is taken for held back when less than this share of it went out."""


class Leftover:
    """One member's leftover, for vectors of `values` of which the first `parameters` are not buffers.

    `keep`: how much of it is kept, 0 to 1. `momentum_correction`: 0 for none, below 1. `clip`: the largest norm of a
    mean difference, 0 for any. No tensor is changed in place, so a `copy` costs nothing.
    """

    def __init__(self, values: int, parameters: int, keep: float, momentum_correction: float, clip: float) -> None:
        self._values = values
        self._parameters = parameters
        self._keep = keep
        self._momentum_correction = momentum_correction
        self._clip = clip
        self._left = torch.zeros(0)
        self._momentum = torch.zeros(0)
        self._offered = torch.zeros(0)
        self.past = Past()
        """What the last exchange left to this member as an owner."""

    def copy(self) -> Leftover:
        """What it is now, to go back to: neither changes the other."""
        return copy.copy(self)

    def take(self, difference: Tensor, members: int) -> Tensor:
        """What to send among so many members: `difference` itself, with the leftover in it, to be changed further."""
        assert len(difference) == self._values
        mine = difference[: self._parameters]
        if self._clip:
            norm = float(torch.linalg.vector_norm(mine, dtype=torch.float64))
            mine.mul_(min(1.0, self._clip / math.sqrt(members) / norm) if norm else 1.0)
        if self._momentum_correction:
            self._momentum = mine + self._momentum_correction * self._momentum if len(self._momentum) else mine.clone()
            mine.copy_(self._momentum)
        if len(self._left):
            mine.add_(self._left, alpha=self._keep)
        if self._momentum_correction:
            self._offered = mine.clone()
        return difference

    def settle(self, leftover: Tensor, past: Past) -> None:
        """Keep what an exchange has left of what `take` gave, and what its owners need of it."""
        self.past = past
        self._left = leftover[: self._parameters]
        if self._momentum_correction:
            held_back = (self._left - self._offered).abs() <= HELD_BACK * self._offered.abs()
            self._momentum = self._momentum * held_back
            self._offered = torch.zeros(0)
