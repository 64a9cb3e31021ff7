"""Rows as they come in from many holders: each checked, of each peer the newest (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256

from axonp2p.errors import AxonError
from axonp2p.table.dht.records.compact import CompactRow, open_compact
from axonp2p.table.dht.records.index_keys import RowQuery, meets


def _anywhere(row: CompactRow) -> bool:
    return True


class RowSample:
    """Peer -> its newest row among those that were heard and are true. A holder can hide a row, but make none up."""

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[CompactRow, bytes]] = {}
        self.false = 0
        """Records that were no row to be believed, or not in their place."""

    def __len__(self) -> int:
        """How many peers have a row here, also one that withdraws them."""
        return len(self._rows)

    def add(
        self, records: Iterable[bytes], now: float, belongs: Callable[[CompactRow], bool] = _anywhere
    ) -> set[bytes]:
        """Take in the sound ones among a stranger's records at `now` (Unix seconds) that belong where they were found;
        the public keys of their peers."""
        peers: set[bytes] = set()
        for data in records:
            try:
                row = open_compact(data, now)
            except AxonError:
                self.false += 1
                continue
            if not belongs(row):
                self.false += 1
                continue
            peers.add(row.public_key)
            known = self._rows.get(row.public_key)
            if known is None or _newer(row, data, *known):
                self._rows[row.public_key] = row, data
        return peers

    def of(self, public_key: bytes) -> CompactRow | None:
        """The newest row of one peer, also when it withdraws it."""
        known = self._rows.get(public_key)
        return known[0] if known else None

    def rows(self) -> list[CompactRow]:
        """The newest row of each peer that has not left."""
        return [row for row, _ in self._rows.values() if not row.withdrawn]


class Enough:
    """Rows that meet a need, until there are as many as wanted."""

    def __init__(self, wanted: RowQuery, count: int) -> None:
        self.sample = RowSample()
        self._wanted = wanted
        self._count = count

    def fitting(self) -> list[CompactRow]:
        """Those that meet the need."""
        return [row for row in self.sample.rows() if meets(row, self._wanted)]

    @property
    def reached(self) -> bool:
        """Whether there are as many as wanted."""
        return len(self.fitting()) >= self._count


def _newer(row: CompactRow, data: bytes, known: CompactRow, known_data: bytes) -> bool:
    if row.sequence != known.sequence:
        return row.sequence > known.sequence
    # Two rows under one number: everybody keeps the same one, whichever came first.
    return sha256(data).digest() < sha256(known_data).digest()
