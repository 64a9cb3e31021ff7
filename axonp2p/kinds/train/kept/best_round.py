"""Which round of a training is the best, by a metric that job.toml names, and when its rounds get no better. Pure.

Only rounds are compared whose state is kept: so the weights of the best one can be had.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from axonp2p.wire.quantities import Count, Number

LOSS = "loss"
UNLESS_SAID = f"min {LOSS}"
_WRITTEN = re.compile(r"(max|min) ([^\s\"\\](?:[^\x00-\x1f\"\\]{0,98}[^\s\"\\])?)")


class BestRound(msgspec.Struct, frozen=True, kw_only=True):
    """The best one so far."""

    rounds: Count
    """How many rounds are in its state."""
    value: Number
    """Of the metric."""


class BestBy(NamedTuple):
    """By what rounds are compared."""

    metric: str
    """As the task's `evaluate` calls it; `loss` is the training loss where `evaluate` gives none."""
    largest: bool
    """Whether the largest value is the best."""

    @classmethod
    def read(cls, written: str) -> BestBy:
        """As job.toml has it, such as "max accuracy". Raises `ValueError`."""
        found = _WRITTEN.fullmatch(written)
        if found is None:
            raise ValueError(f"neither max nor min of a metric: {written}")
        return cls(found[2], found[1] == "max")

    def value(self, loss: float, metrics: Mapping[str, float]) -> float | None:
        """That of a round; None when it has none, or one that is no number."""
        value = metrics.get(self.metric, loss if self.metric == LOSS else math.nan)
        return value if math.isfinite(value) else None

    def best_of(self, best: BestRound | None, rounds: int, value: float | None) -> BestRound | None:
        """The better one of the best so far and the round after which there were so many; of two alike the earlier."""
        if value is None:
            return best
        if best is None or (value > best.value if self.largest else value < best.value):
            return BestRound(rounds=rounds, value=value)
        return best


class EarlyStopping:
    """When a job ends because its rounds get no better: `patience` rounds after the best one; 0: never."""

    def __init__(self, by: BestBy, patience: int, every: int, best: BestRound | None = None) -> None:
        """`best` is that of the job's earlier lives; after `every` so many rounds the state is kept."""
        self.by = by
        self.best = best
        self._patience = patience
        self._every = every

    def accepted(self, rounds: int, loss: float, metrics: Mapping[str, float]) -> bool:
        """So many rounds are accepted, and the last one came to this; whether they are enough."""
        if rounds % self._every == 0:
            self.best = self.by.best_of(self.best, rounds, self.by.value(loss, metrics))
        return self.best is not None and 0 < self._patience <= rounds - self.best.rounds
