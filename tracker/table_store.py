"""The table on disk and in memory, kept in step: a row is found only once it is stored."""

from __future__ import annotations

import sqlite_utils

from axonp2p.errors import MalformedMessage
from axonp2p.identity.peer_id import short
from axonp2p.logs import get_logger
from axonp2p.peers.capability import read_capability
from axonp2p.table.records import Row
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.admission import KnownRow, check_room, is_news
from tracker.database import Database
from tracker.table_index import REMEMBERED_S, TableIndex

log = get_logger(__name__)


class TableStore:
    """Announced rows."""

    def __init__(self, database: Database, index: TableIndex) -> None:
        self._database = database
        self.index = index
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
        self.index.advance(now)
        return len(self.index)

    async def keep(self, signed: Signed[Row], row: Row, now: float) -> bool:
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
        self.index.put(signed, row, offer, forget_at=forget_at, now=now)
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
