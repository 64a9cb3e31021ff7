"""The memory of a member from one exchange to the next: what it held back, and what its owners' part left to it.

Error feedback: what was not sent is added to the next difference (Seide et al. 2014; Karimireddy et al., arXiv
1901.09847), so it comes later and is not lost. Buffers take no part in it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import torch
from torch import Tensor

from axonp2p.training.exchange.terms import Terms


@dataclass(frozen=True)
class Past:
    """The memory of an exchange whose rule bears liars, for the next one; nothing of one that takes the mean.

    `centre` is what it came to: the same at all that took part, so it stays right wherever slices move. `owed` is what
    the coding of the own results dropped: its owner adds it to what the next exchange comes to at these places, so that
    error feedback does not end at a rule that would take it for a lie. Where a slice has moved on, it waits until it
    comes back. As it is, a new one: nothing was agreed on, nothing is owed. Neither tensor is changed once it is here.
    """

    centre: Tensor = field(default_factory=lambda: torch.zeros(0), repr=False)
    owed: Tensor = field(default_factory=lambda: torch.zeros(0), repr=False)

    @classmethod
    def after(cls, terms: Terms, result: Tensor, owed: Tensor) -> Past:
        """The memory that an exchange with that result leaves."""
        return cls(result, owed) if terms.settings.rule.robust else cls()

    def for_owner(self, terms: Terms) -> tuple[Tensor, Tensor]:
        """For the next exchange: where it begins, and a copy of `owed` to be changed. Empty where nobody needs them."""
        if not terms.settings.rule.robust or terms.listens:
            return torch.zeros(0), torch.zeros(0)
        centre = self.centre if len(self.centre) else torch.zeros(terms.values)
        return centre, self.owed.clone() if len(self.owed) else torch.zeros(terms.values)


class ErrorFeedback:
    """One member's leftover, for vectors of `values` of which the first `parameters` are not buffers.

    No tensor is changed in place, so a `copy` costs nothing.
    """

    def __init__(self, values: int, parameters: int) -> None:
        self._values = values
        self._parameters = parameters
        self._left = torch.zeros(0)
        self.past = Past()
        """The memory of the last exchange for this member as an owner."""

    def copy(self) -> ErrorFeedback:
        """A copy of its values now, to go back to: neither changes the other."""
        return copy.copy(self)

    def take(self, difference: Tensor) -> Tensor:
        """The values to send: `difference` itself, with the leftover in it, to be changed further."""
        assert len(difference) == self._values
        if len(self._left):
            difference[: self._parameters].add_(self._left)
        return difference

    def settle(self, leftover: Tensor, past: Past) -> None:
        """Keep what an exchange has left of what `take` gave, and what its owners need of it."""
        self.past = past
        self._left = leftover[: self._parameters]
