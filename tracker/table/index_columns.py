"""The numbers of all rows as columns (pure): a need is compared with a million of them in a few milliseconds.

Each row has a place, the same in all columns. Places of forgotten rows are used again.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from axonp2p.peers.capability import Capability, Need
from axonp2p.peers.coordinates import Coordinate, read_coordinate
from axonp2p.table.records import Row

_FORMS = {
    "alive_until": "u4",
    "found_until": "u4",
    "idle_until": "u4",
    "expires": "u4",
    "forget_at": "u4",
    "since": "u4",
    "sequence": "i8",
    "dht": "u2",
    "cores": "u2",
    "memory_mb": "u4",
    "disk_mb": "u4",
    "gpu_memory_mb": "u4",
    "upload_mbit": "u4",
    "download_mbit": "u4",
    "gflops": "f4",
    "place_a": "f4",
    "place_b": "f4",
    "place_c": "f4",
    "place_d": "f4",
    "height": "f4",
}
"""Times are Unix seconds. A time of 0 means never: a withdrawn row is not alive, one with neither address nor
relay not found, one without a free slot not idle. A height of NaN means that the coordinate is unknown."""
FACTS = np.dtype([(name, "<" + form) for name, form in _FORMS.items()])
"""One row of the columns, as it lies on disk: a start reads it without decoding the row."""
_PACK = struct.Struct("<" + "".join({"u4": "I", "i8": "q", "u2": "H", "f4": "f"}[form] for form in _FORMS.values()))
_MEASURES = ("cores", "memory_mb", "disk_mb", "gpu_memory_mb", "upload_mbit", "download_mbit", "gflops")
_MOST = 2**32 - 1
_FEW = 6
"""Rows that are written faster number by number than column by column."""
_NOWHERE = (math.nan,) * 5

Column = npt.NDArray[Any]
Places = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


def pack_facts(row: Row, offer: Capability | None, *, since: float, forget_at: float) -> bytes:
    """The values of a row's columns, packed; `offer` is its capability, None when it withdraws."""
    times = (0, 0, 0)
    measures: tuple[float, ...] = (0,) * len(_MEASURES)
    if offer is not None:
        until = min(row.expires, _MOST)
        found = until if row.addresses or row.relays else 0
        times = (until, found, found if offer.free > 0 and not offer.refuses else 0)
        gpu = max([gpu.memory_mb for gpu in offer.gpus], default=0)
        counts: tuple[int, ...] = (offer.memory_mb, offer.disk_mb, gpu, offer.upload_mbit, offer.download_mbit)
        if max(counts) > _MOST:
            counts = tuple([min(count, _MOST) for count in counts])
        measures = (offer.cores, *counts, offer.gflops)
    at = read_coordinate(row.coordinate)
    where = _NOWHERE if at is None else (*at.place, at.height)
    return _PACK.pack(
        *times, min(row.expires, _MOST), _seconds(forget_at), _seconds(since), row.sequence, row.dht, *measures, *where
    )


def _seconds(when: float) -> int:
    return min(max(int(when), 0), _MOST)


class Columns:
    """The columns themselves; they grow as places are taken."""

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {name: np.zeros(64, "<" + form) for name, form in _FORMS.items()}
        self._profiles: npt.NDArray[np.uint16] = np.zeros(64, np.uint16)
        self._used = 0

    def column(self, name: str) -> Column:
        """One column, as far as places were ever taken."""
        return self._columns[name][: self._used]

    def get(self, name: str, place: int) -> int:
        """One number."""
        return int(self._columns[name][place])

    def set(self, place: int, **numbers: int) -> None:
        """Change numbers of one row."""
        for name, number in numbers.items():
            self._columns[name][place] = number

    def profile(self, place: int) -> int:
        """The number of the row's profile."""
        return int(self._profiles[place])

    def set_profile(self, place: int, profile: int) -> None:
        """Change the number of the row's profile."""
        self._grow(place + 1)
        self._profiles[place] = profile

    def write(self, places: list[int], facts: bytes) -> None:
        """Put the facts of rows, one after another in `facts`, at their places; the later of two at one stays."""
        self._grow(max(places, default=-1) + 1)
        if len(places) < _FEW:
            for place, numbers in zip(places, _PACK.iter_unpack(facts), strict=True):
                for column, number in zip(self._columns.values(), numbers, strict=True):
                    column[place] = number
            return
        table, where = np.frombuffer(facts, FACTS), np.array(places, np.intp)
        for name, column in self._columns.items():
            column[where] = table[name]

    def clear(self, places: Places) -> None:
        """Nothing is there any more."""
        for column in self._columns.values():
            column[places] = 0

    def alive(self, now: float) -> int:
        """How many rows are valid and not withdrawn."""
        return int(np.count_nonzero(self.column("alive_until") > np.uint32(_seconds(now))))

    def counts(self, now: float) -> tuple[int, int, int]:
        """How many rows are idle, can be found, and are valid, each among the next."""
        second = np.uint32(_seconds(now))
        names = ("idle_until", "found_until", "alive_until")
        idle, found, alive = (int(np.count_nonzero(self.column(name) > second)) for name in names)
        return idle, found, alive

    def fitting(self, need: Need, profiles: Mask, now: float) -> Places:
        """The places of rows that can be found and meet `need`; `profiles` says which profiles do."""
        second = np.uint32(_seconds(now))
        mask = self.column("found_until" if need.also_taken else "idle_until") > second
        for name in _MEASURES:
            wanted = min(getattr(need, name), _MOST) if name != "gflops" else need.gflops
            if wanted:
                column = self.column(name)
                mask &= column >= column.dtype.type(wanted)
        if need.uptime_s:
            mask &= self.column("since") <= np.uint32(max(int(second) - min(need.uptime_s, _MOST), 0))
        if not profiles.all():
            mask &= profiles.take(self._profiles[: self._used])
        return np.flatnonzero(mask)

    def distances(self, places: Places, here: Coordinate) -> npt.NDArray[np.float32]:
        """Guessed round trips to rows at these places, in milliseconds; infinite where nobody knows."""
        squares = np.zeros(len(places), np.float32)
        for name, own in zip(("place_a", "place_b", "place_c", "place_d"), here.place, strict=True):
            squares += (self._columns[name][places] - np.float32(own)) ** 2
        found: npt.NDArray[np.float32] = np.sqrt(squares) + self._columns["height"][places] + np.float32(here.height)
        found[np.isnan(found)] = np.inf
        return found

    def _grow(self, used: int) -> None:
        room = len(self._profiles)
        if used > room:
            room = max(used, room + room // 2)
            for name, column in self._columns.items():
                self._columns[name] = _longer(column, room)
            self._profiles = _longer(self._profiles, room)
        self._used = max(self._used, used)


def _longer(column: Column, room: int) -> Column:
    longer = np.zeros(room, column.dtype)
    longer[: len(column)] = column
    return longer
