"""Longer steps where a member's own noise made them short.

Adam and its kin divide each value's step by the root mean square of that value's gradients, noise included. In
data-parallel training that is the noise of the mean of all members' gradients, which is N times smaller in variance;
a member that steps by its own gradients takes steps up to sqrt(N) too short, most where noise outweighs the signal.
The members' exchanges show how much: over some exchanges the mean square of the mean difference, against that of the
own one, is (s + n / N) / (s + n) for a signal s and a noise n; from it follows what should have been divided by.

A difference sums steps that momentum has averaged over (1 + beta1) / (1 - beta1) gradients, so that its noise is that
many times smaller than the noise of one gradient, which is what stands in the divisor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, optim

MEMORY = 0.8
"""How much of what was seen at the exchanges before counts at each one."""
LEAST_SEEN = 3
"""Exchanges before anything is believed."""
_TINY = 1e-30


@dataclass(frozen=True)
class StepScale:
    """The memory that one member has of its own differences and the means. Nothing in it is ever changed."""

    averaged: float
    """Over how many gradients the optimiser's momentum averages; 1 without momentum."""
    seen: int = 0
    own: Tensor | None = None
    """Mean squares of the own differences, flat."""
    mean: Tensor | None = None
    """Mean squares of the mean differences, flat."""

    def after(self, difference: Tensor, mean: Tensor) -> StepScale:
        """The same, with one more exchange seen."""
        own, together = torch.square(difference), torch.square(mean)
        if self.own is not None and self.mean is not None:
            own, together = torch.lerp(own, self.own, MEMORY), torch.lerp(together, self.mean, MEMORY)
        return StepScale(self.averaged, self.seen + 1, own, together)

    def factors(self, members: int) -> Tensor | None:
        """By how much to lengthen each value's steps, 1 to sqrt(members), flat; None while that is not known."""
        if self.seen < LEAST_SEEN or members < 2 or self.own is None or self.mean is None:
            return None
        least = 1 / members
        # Values that never moved have no ratio: they count as all signal, and keep their steps.
        ratio = torch.where(self.own > _TINY, self.mean / self.own.clamp(min=_TINY), 1.0)
        ratio.clamp_(least, 1.0 - 1e-3)
        signal = (ratio - least).div_((1.0 - ratio).mul_(self.averaged))
        return (signal + 1.0).div_(signal.add_(least)).sqrt_()


_KIN = (optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam, optim.RMSprop)


def averaged_by(optimizers: Sequence[optim.Optimizer]) -> float | None:
    """Over how many gradients the momentum of a task's optimisers averages, at least; None when one of them does not
    divide by their root mean square."""
    if not all(isinstance(one, _KIN) for one in optimizers):
        return None
    groups = [one.param_groups[0] for one in optimizers]
    momenta = [float(group["betas"][0]) if "betas" in group else float(group.get("momentum", 0.0)) for group in groups]
    return min((1 + momentum) / max(1 - momentum, 1e-3) for momentum in momenta)
