"""How many rows came from one address (pure): one computer cannot fill the table with peers that it made up.

Each row has a place (`table_index`), and beside it the number of its source: an IPv4 address or an IPv6 /56. Sources
are numbered by a keyed hash, so that all of it takes four bytes a row and a fixed table of counts. Two sources may
share a number; nobody outside can find out which, and a million sources add a handful to a count of thousands.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

from axonp2p.errors import TooOften

MOST_ROWS_OF_ONE = 4096
"""Peers that may be announced from one source: a university behind one address has room."""
NUMBERS = 1 << 18
_NOBODY = NUMBERS
_ROOM_AFTER_S = 600.0


@dataclass(frozen=True)
class PassedOnBy:
    """A learnt tracker that hands over rows: they count for it."""

    household: str
    """Whence it calls (`transport.address.source_of`)."""
    network: str
    """`table.tracker_standing.network_of` its address."""


class RowSources:
    """Counts by source. Rows of which nobody knows whence they came (another tracker's, a start's) do not count."""

    def __init__(self, secret: bytes, most: int = MOST_ROWS_OF_ONE) -> None:
        # The same sources come again and again.
        self._number = lru_cache(maxsize=16_384)(partial(_number, secret))
        self._most = most
        self.total = 0
        """Rows whose source is known."""
        self._counts = array("I", bytes(4 * NUMBERS))
        self._numbers = array("I")

    def count(self, source: str) -> int:
        """How many remembered rows came from there."""
        return self._counts[self._number(source)]

    def check(self, place: int | None, source: str) -> None:
        """Raise `TooOften` when no more peers may be announced from `source`; a row whose place it has may be renewed.

        `place` is where the peer's known row is, None when there is none.
        """
        number = self._number(source)
        if self._counts[number] >= self._most and (place is None or self._of(place) != number):
            raise TooOften(
                f"too many from one address: {self._most} peers were announced from {source}",
                cause="a tracker takes no more from one IPv4 address or IPv6 /56",
                fix="announce from another address, or to another tracker; room comes as peers are forgotten",
                wait_s=_ROOM_AFTER_S,
            )

    def came(self, place: int, source: str) -> None:
        """The row at this place came from there."""
        number = self._number(source)
        if self._of(place) == number:
            return
        self.forget([place])
        if place >= len(self._numbers):
            self._numbers.extend([_NOBODY] * (place + 1 - len(self._numbers)))
        self._numbers[place] = number
        self._counts[number] += 1
        self.total += 1

    def forget(self, places: Iterable[int]) -> None:
        """Nothing is at these places any more."""
        for place in places:
            number = self._of(place)
            if number != _NOBODY:
                self._counts[number] -= 1
                self.total -= 1
                self._numbers[place] = _NOBODY

    def _of(self, place: int) -> int:
        return self._numbers[place] if place < len(self._numbers) else _NOBODY


def _number(secret: bytes, source: str) -> int:
    found = hashlib.blake2b(source.encode(), digest_size=4, key=secret).digest()
    return int.from_bytes(found, "big") % NUMBERS
