"""The table on disk and in memory, kept in step: a row is found only once it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import sqlite_utils

from axonp2p.errors import Busy, MalformedMessage, StaleRow
from axonp2p.identity.peer_id import PeerId, short
from axonp2p.logs import get_logger
from axonp2p.peers.capability import read_capability
from axonp2p.table.records import Row
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.admission import KnownRow, check_room, is_news
from tracker.database import Database
from tracker.table_index import REMEMBERED_S, TableIndex

log = get_logger(__name__)


class SeenRows(Protocol):
    """What counts every row that was ever stored, for digests: `axonp2p.table.slots.Slots`."""

    def add(self, peer: PeerId, sequence: int, expires: int, payload: bytes, before: bytes | None = None) -> None:
        """One more row, as its peer signed it; `before` are the signed bytes of the row whose place it takes."""


class TableStore:
    """Announced rows."""

    def __init__(self, database: Database, index: TableIndex, slots: SeenRows | None = None) -> None:
        self._database = database
        self.index = index
        self._slots = slots
        self.on_news: Callable[[Signed[Row], Row, Signed[Row] | None], None] = lambda signed, row, before: None
        """Told of each new row that was announced here (not of those in `keep_many`), once it is stored.

        The last argument is the row whose place it takes.
        """
        self._arriving = 0

    def load(self, now: float) -> int:
        """Fill the index from the disk; returns how many rows. `now` is Unix time."""
        found = self._database.load(lambda database: database.execute("SELECT * FROM rows").fetchall())
        for peer, _, payload, signature, forget_at in found:
            signed: Signed[Row] = Signed(signer=peer, payload=payload, signature=signature)
            try:
                row = decode_as(payload, Row, Row.LIMIT)  # its signature was checked when it came
                offer = None if row.capability is None else read_capability(row.capability)
            except MalformedMessage as error:
                # Another version of this program took it. Its peer will announce again, in today's form.
                log.warning("stored row not understood", peer=short(peer), reason=error.message)
                continue
            self.index.put(signed, row, offer, forget_at=forget_at, now=now)
            if self._slots is not None:
                self._slots.add(row.peer, row.sequence, row.expires, payload)
        self.index.advance(now)
        return len(self.index)

    async def keep(self, signed: Signed[Row], row: Row, now: float, *, announced: bool = True) -> bool:
        """Store a row that `open_row` believed; returns whether it is new. It is durable when this returns.

        Raises `StaleRow`, `MalformedMessage` when its capability cannot be read, and `Busy`.
        """
        offer = None if row.capability is None else read_capability(row.capability)
        forget_at = now + REMEMBERED_S
        stranger = row.peer not in self.index
        if stranger:
            check_room(len(self.index) + self._arriving)
        self._arriving += stranger
        try:
            news = await self._database.write(lambda database: _store(database, signed, row, forget_at))
        finally:
            self._arriving -= stranger
        before = self.index.signed_of(row.peer)
        self.index.put(signed, row, offer, forget_at=forget_at, now=now)
        stands = self.index.signed_of(row.peer)
        if news and stands is not None and stands.payload == signed.payload:  # else a newer one was quicker
            if self._slots is not None:
                old = None if before is None else before.payload
                self._slots.add(row.peer, row.sequence, row.expires, signed.payload, old)
            if announced:
                self.on_news(signed, row, before)
        return news

    async def keep_many(self, rows: Iterable[tuple[Signed[Row], Row]], now: float) -> list[tuple[Signed[Row], Row]]:
        """Store rows that `open_row` believed and another tracker sent; returns those that were new, stored by now.

        One that cannot be kept (older than the known one, not understood, no room) is left out without a word.
        """
        news = []
        for signed, row in rows:
            try:
                new = await self.keep(signed, row, now, announced=False)
            except (StaleRow, MalformedMessage, Busy):
                continue
            if new:
                news.append((signed, row))
        return news

    async def sweep(self, now: float) -> None:
        """Forget what has been expired for long, on the disk too."""
        self.index.advance(now)
        forgotten = await self._database.write(
            lambda database: database.execute("DELETE FROM rows WHERE forget_at <= ?", [now]).rowcount
        )
        if forgotten:
            log.info("rows forgotten", rows=forgotten)


def _store(database: sqlite_utils.Database, signed: Signed[Row], row: Row, forget_at: float) -> bool:
    known = database.execute("SELECT sequence, payload FROM rows WHERE peer = ?", [row.peer]).fetchone()
    if not is_news(row, signed.payload, KnownRow(*known) if known else None):
        return False
    database.execute(
        "INSERT OR REPLACE INTO rows (peer, sequence, payload, signature, forget_at) VALUES (?, ?, ?, ?, ?)",
        [row.peer, row.sequence, signed.payload, signed.signature, forget_at],
    )
    if known is None:
        log.info("peer announced", peer=short(row.peer), name=row.name)
    return True
