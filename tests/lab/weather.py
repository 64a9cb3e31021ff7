"""What becomes of a packet on its way between two sites: when it arrives, if it does. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence


class Weather:
    """Delays, losses and cuts between sites, which are numbers from 0. Times and delays are seconds."""

    def __init__(self, delays: Sequence[Sequence[float]], chance: random.Random) -> None:
        """`delays[a][b]`: one way, from a to b."""
        self._delays = [list(row) for row in delays]
        self._chance = chance.random
        self._loss = [0.0] * len(delays)
        self._cut: set[tuple[int, int]] = set()
        self._last: dict[tuple[int, int], float] = {}

    def arrival(self, sender: int, receiver: int, now: float) -> float | None:
        """When a packet that leaves now is there; None: it is lost."""
        pair = sender, receiver
        if pair in self._cut:
            return None
        for share in (self._loss[sender], self._loss[receiver]):
            if share and self._chance() < share:
                return None
        # A delay that has just become shorter lets nobody overtake.
        due = max(now + self._delays[sender][receiver], self._last.get(pair, 0.0))
        self._last[pair] = due
        return due

    def set_delay(self, one: int, other: int, seconds: float) -> None:
        """One way, in both directions."""
        self._delays[one][other] = self._delays[other][one] = seconds

    def set_loss(self, site: int, share: float) -> None:
        """Of all packets that leave or reach a site, each way."""
        self._loss[site] = share

    def cut(self, sender: int, receiver: int) -> None:
        """From now on nothing gets from one to the other; the way back is another pair."""
        self._cut.add((sender, receiver))

    def mend(self, sender: int, receiver: int) -> None:
        """It does again."""
        self._cut.discard((sender, receiver))

    def partition(self, groups: Sequence[Sequence[int]]) -> None:
        """Only within a group does anything arrive; who is in none is alone."""
        where = {site: number for number, group in enumerate(groups) for site in group}
        sites = range(len(self._delays))
        self._cut = {(a, b) for a in sites for b in sites if a != b and where.get(a, ~a) != where.get(b, ~b)}

    def heal(self) -> None:
        """No cut is left."""
        self._cut.clear()
