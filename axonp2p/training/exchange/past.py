"""What members keep of an exchange whose rule bears liars, for the next one. Nothing of one that takes the mean.

`centre` is what it came to: the same at all that took part, so it stays right wherever slices move. `owed` is what the
coding of the own results dropped: its owner adds it to what the next exchange comes to at these places, so that error
feedback does not end at a rule that would take it for a lie. Where a slice has moved on, it waits until it comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from axonp2p.training.exchange.terms import Terms


@dataclass(frozen=True)
class Past:
    """As it is, a new one: nothing was agreed on, nothing is owed. Neither tensor is changed once it is here."""

    centre: Tensor = field(default_factory=lambda: torch.zeros(0), repr=False)
    owed: Tensor = field(default_factory=lambda: torch.zeros(0), repr=False)

    @classmethod
    def after(cls, terms: Terms, result: Tensor, owed: Tensor) -> Past:
        """What an exchange with that result leaves."""
        return cls(result, owed) if terms.rule.robust else cls()

    def for_owner(self, terms: Terms) -> tuple[Tensor, Tensor]:
        """For the next exchange: where it begins, and a copy of `owed` to be changed. Empty where nobody needs them."""
        if not terms.rule.robust or terms.listens:
            return torch.zeros(0), torch.zeros(0)
        centre = self.centre if len(self.centre) else torch.zeros(terms.values)
        return centre, self.owed.clone() if len(self.owed) else torch.zeros(terms.values)
