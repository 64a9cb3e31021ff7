"""How long datagrams take between homes: a plane of positions, an access line at both ends, jitter, and loss."""

from __future__ import annotations

import math
import random

Address = tuple[str, int]

WORLD_S = 0.222
"""Round trip across the side of the square in which homes lie evenly."""
FASTEST_ACCESS_S, SLOWEST_ACCESS_S = 0.001, 0.010
JITTER = 0.1


class HomeLinks:
    """Round trips of 40 / 122 / 218 / 253 ms at 5 / 50 / 95 / 99 % of the pairs, each datagram up to 10 % more or less.

    The same seed gives the same world."""

    def __init__(self, seed: int, loss: float = 0.0) -> None:
        self.loss = loss
        """Share of the datagrams that are lost; may be changed at any time."""
        self._seed = seed
        self._chance = random.Random(seed)
        self._places: dict[Address, tuple[float, float, float]] = {}

    def round_trip(self, one: Address, other: Address) -> float:
        """Seconds there and back, without jitter."""
        x, y, access = self._place(one)
        far_x, far_y, far_access = self._place(other)
        return WORLD_S * math.hypot(x - far_x, y - far_y) + access + far_access

    def delay(self, source: Address, target: Address) -> float | None:
        """Seconds that one datagram takes, or None: lost."""
        if self.loss and self._chance.random() < self.loss:
            return None
        return self.round_trip(source, target) / 2 * self._chance.uniform(1 - JITTER, 1 + JITTER)

    def _place(self, address: Address) -> tuple[float, float, float]:
        if address not in self._places:
            chance = random.Random(f"{self._seed}/{address}")
            access = chance.uniform(FASTEST_ACCESS_S, SLOWEST_ACCESS_S)
            self._places[address] = (chance.random(), chance.random(), access)
        return self._places[address]
