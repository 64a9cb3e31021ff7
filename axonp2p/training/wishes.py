"""What a job file asks of the exchange between members. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from axonp2p.jobs.aggregation import Aggregation
from axonp2p.tensors.coding import Bits

COMPRESSIONS: dict[str, Bits | None] = {
    "auto": None, "none": 32, "bf16": 16, "8-bit": 8, "4-bit": 4, "2-bit": 2, "1-bit": 1,
}  # fmt: skip
"""The names that a job file uses, and how many bits a value then has; None: as few as are good."""


@dataclass(frozen=True)
class ExchangeSettings:
    """The exchange as the job's author wants it; what is None or 0 is chosen from links and steps (`choice`)."""

    bits: Bits | None = None
    """A value's."""
    density: float = 1.0
    """About which share of the values goes out; the rest is kept for later."""
    warm_up_rounds: int = 0
    """In these first rounds the density goes down to that step by step, as in Deep Gradient Compression."""
    exchange_every: int = 0
    """Local steps between two exchanges."""
    seconds: float = 0.0
    """How long the local steps of a round may take; 0: as long as they do."""
    overlap: bool = True
    """Whether the next steps may begin before an exchange is over."""
    outer_learning_rate: float | None = None
    outer_momentum: float | None = None
    error_feedback: float = 1.0
    """How much of what was held back is kept for the next exchange."""
    momentum_correction: float = 0.0
    """Momentum that each member adds to its difference before anything is held back."""
    step_scaling: bool = True
    """Whether steps of Adam and its kin are lengthened where a member's own noise made them short."""
    clip: float = 0.0
    """The largest norm of a mean difference; 0: none."""
    aggregation: Aggregation = "mean"
    """By which rule owners make one value of the members'."""
    hostile: int | None = None
    """How many members may lie; None: a quarter of those that there are."""

    def density_in(self, round: int) -> float:
        """The density in a round, counted from 0: 25 %, 6.25 %, 1.56 % and so on while it warms up."""
        return max(self.density, 0.25 ** (round + 1)) if round < self.warm_up_rounds else self.density
