"""Who leaves and who comes, and when: each machine lives by chance, with a half-life. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """At this second a machine dies, or another one comes to its line."""

    at: float
    line: int
    comes: bool


def changes(chance: random.Random, lines: int, half_life: float, away: float) -> Iterator[Change]:
    """Without end, in order of time. On average a line is empty for `away` seconds before the next machine comes."""
    mean = half_life / math.log(2)
    coming = [Change(chance.expovariate(1 / mean), line, comes=False) for line in range(lines)]
    while True:
        change = min(coming, key=lambda one: (one.at, one.line))
        yield change
        wait = chance.expovariate(1 / (mean if change.comes else away))
        coming[change.line] = Change(change.at + wait, change.line, comes=not change.comes)
