"""A peer that is only its rows: it signs them as a daemon would.

Its coordinate trembles, and is published as daemons do; one renewal in ten changes how many slots are free.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from axonp2p.identity.keys import PrivateKey
from axonp2p.peers.coordinates import Coordinate, steady, write_coordinate
from axonp2p.table.records import Row
from axonp2p.wire.envelope import Signed, sign

LIFE_S = 3600
TREMBLE_MS = 2.0
"""Of each dimension of a coordinate from one announce to the next (standard deviation): an assumption."""

RowOf = Callable[[str, int, int, float, random.Random], Row]
"""Peer, its number, sequence number, Unix time, chance: a row like those of real peers."""


@dataclass
class Peer:
    """One that announces."""

    key: PrivateKey
    row: Row
    holders: tuple[int, int]
    """Numbers of its two trackers."""
    place: tuple[float, ...]
    """Where it stands, in milliseconds."""

    def renewed(self, now: float, chance: random.Random) -> Signed[Row]:
        """Its next row, signed at `now` (Unix seconds)."""
        place = tuple(part + chance.gauss(0, TREMBLE_MS) for part in self.place)
        coordinate = write_coordinate(Coordinate(place, 5.0, 0.2))
        offer = self.row.capability
        if offer is not None and chance.random() < 0.1:
            offer = {**offer, "free": chance.randrange(3)}
        self.row = msgspec.structs.replace(
            self.row, sequence=max(self.row.sequence + 1, int(now * 1000)), expires=int(now) + LIFE_S,
            coordinate=steady(self.row.coordinate, coordinate), capability=offer,
        )  # fmt: skip
        return sign(self.key, self.row)
