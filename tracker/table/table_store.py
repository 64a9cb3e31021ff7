"""The table on disk and in memory, kept in step: a row is found only once it is stored.

Whether a row is news is decided in memory. Rows that come while others are written wait and are then written together:
a commit takes as long for one as for a hundred. On disk a row lies at the place that it has in the index, with its
facts as the index holds them, so that a start decodes nothing and a renewal looks nothing up.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sqlite_utils

from axonp2p.errors import Busy, MalformedMessage, StaleRow
from axonp2p.identity.keys import SIGNATURE_BYTES
from axonp2p.identity.peer_id import PeerId
from axonp2p.logs import get_logger
from axonp2p.peers.capability import read_capability
from axonp2p.table.records import Row
from axonp2p.table.slots import Slots
from axonp2p.table.tracker_standing import MOST_LEARNT
from axonp2p.wire.codec import decode_as
from axonp2p.wire.envelope import Signed
from tracker.storage.database import Database
from tracker.table.admission import KnownRow, check_room, is_news
from tracker.table.index_columns import FACTS
from tracker.table.offer_profiles import Profile, profile_of
from tracker.table.row_sources import MOST_ROWS_OF_ONE, PassedOnBy, RowSources
from tracker.table.table_index import REMEMBERED_S, Entry, TableIndex

log = get_logger(__name__)

MOST_WAITING = 4096
"""Rows that may wait to be stored; over that, announces are refused as busy."""
MOST_TOGETHER = 512
"""Rows in one commit."""
WRITTEN_EVERY_S = 0.02
"""Seconds between two commits. One costs as much processor time as ten rows in it do, so those that come meanwhile wait
for the next; the first after a pause does not."""
_LOADED_TOGETHER = 20_000
_IN_A_STATEMENT = 64


@dataclass(slots=True, eq=False)
class _Arrival:
    """A row on its way to the disk."""

    signed: Signed[Row]
    row: Row
    entry: Entry
    announced: bool
    done: asyncio.Future[None]


class TableStore:
    """Announced rows."""

    def __init__(self, database: Database, index: TableIndex, slots: Slots | None = None) -> None:
        self._database = database
        self.index = index
        self._slots = slots
        self._sources = RowSources(secrets.token_bytes(16))
        # Rows that only a learnt tracker handed over count for its household and, here, for its network, until their
        # peers announce themselves.
        self._of_learnt = RowSources(secrets.token_bytes(16))
        self.on_news: Callable[[Signed[Row], Row, Signed[Row] | None], None] = lambda signed, row, before: None
        """Told of each new row that was announced here (not of those in `keep_many`), once it is stored.

        The last argument is the row whose place it takes.
        """
        self._arriving: dict[PeerId, _Arrival] = {}
        self._waiting: list[_Arrival] = []
        self._writing: asyncio.Task[None] | None = None
        self._written_at = 0.0

    def load(self, now: float) -> int:
        """Fill the index from the disk; returns how many rows. `now` is Unix time."""
        profiles: dict[bytes, Profile | None] = {}

        def read(database: sqlite_utils.Database) -> None:
            gone: list[list[int]] = []
            found = database.execute("SELECT place, peer, facts, profile, body FROM rows")
            while rows := found.fetchmany(_LOADED_TOGETHER):
                gone += self._take_back(rows, profiles, now)
            with database.atomic():
                database.conn.executemany("DELETE FROM rows WHERE place = ?", gone)

        self._database.load(read)
        self.index.settle()
        return len(self.index)

    def _take_back(self, rows: list[Any], profiles: dict[bytes, Profile | None], now: float) -> list[list[int]]:
        """Put stored rows into the index; returns the places of those that are to be forgotten."""
        facts = np.frombuffer(b"".join(row[2] for row in rows), FACTS)
        numbers = zip(facts["forget_at"].tolist(), facts["sequence"].tolist(), facts["expires"].tolist(), strict=True)
        entries, gone = [], []
        for (place, peer, packed, name, body), (forget_at, sequence, expires) in zip(rows, numbers, strict=True):
            if name not in profiles:
                profiles[name] = _profile_in(body)
            profile = profiles[name]
            if forget_at <= now or profile is None:
                gone.append([place])
                continue
            entries.append(Entry(place, peer, body, packed, profile))
            if self._slots is not None:
                self._slots.add(peer, sequence, expires, body[SIGNATURE_BYTES:])
        self.index.enter_many(entries)
        return gone

    def keep(self, signed: Signed[Row], row: Row, now: float, source: str) -> asyncio.Future[None] | None:
        """Store a row that `open_announced` believed. It is durable once what is returned is done; None: it is already.

        `source` is whence it came (`rate_limit.source_of`). Raises `StaleRow`, `MalformedMessage` when its capability
        cannot be read, `Busy`, and `TooOften` when too many peers were announced from there. A caller that waits must
        not cancel what is returned: others may wait for it too.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise Busy("too much waits to be stored", fix="ask again in a few seconds")
        place = self.index.place_of(row.peer)
        if place is None or row.capability is not None:  # whoever goes may go
            self._sources.check(place, source)
        arrival = self._arrive(signed, row, now, announced=True)
        if arrival is not None:
            self._sources.came(arrival.entry.place, source)
            self._of_learnt.forget([arrival.entry.place])
            return arrival.done
        earlier = self._arriving.get(row.peer)
        return None if earlier is None else earlier.done

    def has_room_for(self, learnt: PassedOnBy | None) -> bool:
        """Whether more peers are taken that only this learnt tracker knows; always for a trusted one (None).

        Such trackers together may double the table, but no more: each may hand over as many peers as one household may
        announce, or an eighth of those that are known otherwise.
        """
        most = max(MOST_ROWS_OF_ONE, (len(self.index) - self._of_learnt.total) // MOST_LEARNT)
        if learnt is None:
            return True
        return max(self._sources.count(learnt.household), self._of_learnt.count(learnt.network)) < most

    async def keep_many(
        self, rows: Iterable[tuple[Signed[Row], Row]], now: float, learnt: PassedOnBy | None = None
    ) -> list[tuple[Signed[Row], Row]]:
        """Store rows that `open_row` believed and another tracker sent; returns those that were new, stored by now.

        New peers count for that tracker, unless it is trusted (None). One that cannot be kept (older
        than the known one, not understood, no room) is left out without a word. Raises `Busy` when the disk takes
        nothing.
        """
        arrivals = []
        for signed, row in rows:
            is_new = self.index.place_of(row.peer) is None
            if is_new and not self.has_room_for(learnt):
                continue
            try:
                arrival = self._arrive(signed, row, now, announced=False)
            except (StaleRow, MalformedMessage, Busy):
                continue
            if arrival is not None:
                arrivals.append(arrival)
                if is_new and learnt is not None:
                    self._sources.came(arrival.entry.place, learnt.household)
                    self._of_learnt.came(arrival.entry.place, learnt.network)
                elif learnt is None:
                    self._of_learnt.forget([arrival.entry.place])
        await asyncio.gather(*(arrival.done for arrival in arrivals))
        return [(arrival.signed, arrival.row) for arrival in arrivals]

    async def sweep(self, now: float) -> None:
        """Forget what has been expired for long, on the disk too."""
        forgotten = self.index.advance(now)
        if not forgotten:
            return
        self._sources.forget(forgotten)
        self._of_learnt.forget(forgotten)
        places = [[place] for place in forgotten]
        # A row written to these places from now on waits behind this. Should it fail, `load` drops them.
        await self._database.write(
            lambda database: database.conn.executemany("DELETE FROM rows WHERE place = ?", places)
        )
        log.info("rows forgotten", rows=len(forgotten))

    def _arrive(self, signed: Signed[Row], row: Row, now: float, *, announced: bool) -> _Arrival | None:
        """Queue a row to be stored; None when it is known already."""
        if not is_news(row, signed.payload, self._newest(row.peer)):
            return None
        offer = None if row.capability is None else read_capability(row.capability)
        if row.peer not in self.index and row.peer not in self._arriving:
            check_room(len(self.index), passed_on=not announced)
        entry = self.index.prepare(signed, row, offer, forget_at=now + REMEMBERED_S, now=now)
        arrival = _Arrival(signed, row, entry, announced, asyncio.get_running_loop().create_future())
        self._arriving[row.peer] = arrival
        self._waiting.append(arrival)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_waiting(), name="row writer")
        return arrival

    def _newest(self, peer: PeerId) -> KnownRow | None:
        arriving = self._arriving.get(peer)
        if arriving is not None:
            return KnownRow(arriving.row.sequence, arriving.signed.payload)
        return self.index.known(peer)

    async def _write_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            # The first after a pause is written at once.
            await asyncio.sleep(self._written_at + WRITTEN_EVERY_S - loop.time())
            self._written_at = loop.time()
            batch, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
            rows = [_stored_form(arrival.entry) for arrival in batch]
            try:
                await self._database.write(lambda database, rows=rows: _store(database, rows), len(rows))  # type: ignore[misc]
            except Exception as error:  # the edge of a task: who waits for these rows must hear of it
                for arrival in batch:
                    self._failed(arrival, error)
            else:
                before = self.index.enter([arrival.entry for arrival in batch])
                for arrival, known in zip(batch, before, strict=True):
                    self._stored(arrival, known)

    def _stored(self, arrival: _Arrival, before: Signed[Row] | None) -> None:
        signed, row = arrival.signed, arrival.row
        if self._arriving.get(row.peer) is arrival:
            del self._arriving[row.peer]
        if self._slots is not None:
            old = None if before is None else before.payload
            self._slots.add(row.peer, row.sequence, row.expires, signed.payload, old)
        if arrival.announced:
            self.on_news(signed, row, before)
        if not arrival.done.done():
            arrival.done.set_result(None)

    def _failed(self, arrival: _Arrival, error: Exception) -> None:
        if self._arriving.get(arrival.row.peer) is arrival:
            del self._arriving[arrival.row.peer]
            if self.index.abandon(arrival.entry):
                self._sources.forget([arrival.entry.place])
                self._of_learnt.forget([arrival.entry.place])
        if not arrival.done.done():
            arrival.done.set_exception(error)


def _stored_form(entry: Entry) -> tuple[int, str, bytes, bytes, bytes]:
    return entry.place, entry.peer, entry.facts, entry.profile.name, entry.body


def _store(database: sqlite_utils.Database, rows: list[tuple[Any, ...]]) -> None:
    # Many rows in a statement: the interpreter's lock is let go, and must be had again, once a statement.
    for start in range(0, len(rows), _IN_A_STATEMENT):
        part = rows[start : start + _IN_A_STATEMENT]
        database.conn.execute(_statement(len(part)), [value for row in part for value in row])


@lru_cache(maxsize=_IN_A_STATEMENT)
def _statement(rows: int) -> str:
    values = ",".join(["(?,?,?,?,?)"] * rows)
    return f"REPLACE INTO rows (place, peer, facts, profile, body) VALUES {values}"  # noqa: S608


def _profile_in(body: bytes) -> Profile | None:
    """The words of a stored row; None when another version of this program took it and it is not understood."""
    try:
        row = decode_as(body[SIGNATURE_BYTES:], Row, Row.LIMIT)  # its signature was checked when it came
        return profile_of(None if row.capability is None else read_capability(row.capability))
    except MalformedMessage as error:
        log.warning("stored row not understood", reason=error.message)
        return None
