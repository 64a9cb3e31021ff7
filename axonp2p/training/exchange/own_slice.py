"""The work of a member as the owner of a slice: gather each part from the others, decide when it is closed, average.

A part is closed as soon as all members' values are there. Each of the others is waited for until its own deadline
(`arrivals`); a part that only lacks members whose deadline is over is closed without them, but never with fewer than
half of all, or than the round's rule needs. Members' values are taken in the order of ranks, so what they come to
depends on nothing but the values and on whose they are. All values of a part are held until it is closed.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from axonp2p.errors import PeerMisbehaved
from axonp2p.training.exchange.arrivals import ArrivalTimes
from axonp2p.training.exchange.terms import Terms
from axonp2p.training.robust.aggregate import aggregate, mean_of_changes


class Mean(NamedTuple):
    """The mean of one part, or what another rule makes of it."""

    values: Tensor
    """float32."""
    samples: int
    """The sum of all weights in it."""
    left_out: list[int]
    """Members whose values are not in it, sorted."""


class OwnSlice:
    """The own slice in one exchange that began at `begun` (seconds, on the clock of every `now`)."""

    def __init__(self, terms: Terms, samples: int, arrivals: ArrivalTimes, begun: float) -> None:
        self._terms = terms
        self._arrivals = arrivals
        self._begun = begun
        self._weights = {terms.rank: samples}
        parts = terms.parts_of(terms.rank)
        self._open: dict[int, dict[int, Tensor]] = {offset: {} for offset in parts}
        self._others = [member for member in terms.members if member != terms.rank]
        self._to_come = dict.fromkeys(self._others, len(parts))
        self._until = {rank: begun + arrivals.deadline_after(rank, terms.settings.patience) for rank in self._others}
        self._given_up: set[int] = set()
        self.left_out: set[int] = set()
        """Members without whose values at least one part was closed."""

    def deadline(self) -> float | None:
        """When `due` has something to decide next; None when time decides nothing more."""
        waited_for = (rank for rank in self._others if self._to_come[rank] > 0 and rank not in self._given_up)
        return min((self._until[rank] for rank in waited_for), default=None) if self._open else None

    def due(self, now: float) -> list[int]:
        """The offsets of parts that are to be closed because someone's deadline is over."""
        late = {rank for rank in self._others if self._until[rank] <= now} - self._given_up
        self._given_up |= late
        return [offset for offset in self._open if self.closable(offset)] if late else []

    def closable(self, offset: int) -> bool:
        """Whether a part is still open, and nobody is waited for any more."""
        if offset not in self._open:
            return False
        there = self._open[offset].keys()
        return len(there) + 1 >= self._terms.fewest and all(
            rank in there or rank in self._given_up for rank in self._others
        )

    def check(self, sender: int, offset: int, samples: int) -> None:
        """Raises `PeerMisbehaved` when `sender` has said otherwise, or the same, before."""
        if self._weights.get(sender, samples) != samples:
            raise PeerMisbehaved(f"rank {sender} changed its number of samples within an exchange")
        if sender in self._open.get(offset, ()):
            raise PeerMisbehaved(f"rank {sender} sent its values at {offset} twice")

    def is_open(self, offset: int) -> bool:
        """Whether values for a part are still of use."""
        return offset in self._open

    def heard(self, sender: int, now: float) -> None:
        """A part of a member's values has come, in time or not."""
        self._to_come[sender] -= 1
        if self._to_come[sender] == 0:
            self._arrivals.heard(sender, now - self._begun)

    def add(self, sender: int, offset: int, samples: int, values: Tensor) -> None:
        """Take a member's values of an open part."""
        self._weights[sender] = samples
        self._open[offset][sender] = values

    def close(self, offset: int, mine: Tensor, centre: Tensor, now: float) -> Mean:
        """Take the mean of a part, with `mine` as the own values; `centre`: what the last exchange came to there."""
        gathered = self._open.pop(offset)
        gathered[self._terms.rank] = mine
        left_out = [member for member in self._others if member not in gathered]
        for member in left_out:
            if member not in self.left_out:
                self._arrivals.missed(member, now - self._begun)
        self.left_out.update(left_out)
        there = sorted(gathered)
        rows, weights = [gathered[member] for member in there], [self._weights[member] for member in there]
        result = aggregate(self._terms.settings.rule, rows, weights, centre)
        sparse = self._terms.rows_at(offset, len(mine))
        if sparse.start < sparse.stop and not self._terms.settings.rule.robust:
            result[sparse] = mean_of_changes([row[sparse] for row in rows], weights)
        return Mean(result, sum(weights), left_out)
