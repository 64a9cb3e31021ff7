"""results.sqlite: one result for each item, and what peers are owed for them, in one transaction.

A result that `keep` has returned from survives a power cut (`JobDatabase`). The item's number is the primary key, so
nothing can give an item a second result. Work adds up by peer and reservation and is never taken off: what is paid is
in job.json, in the same change that numbers the receipts, so no crash pays twice or forgets. Results that wait until
other peers have given theirs are in a table of their own, and count nothing. Everything here blocks; one thread at a
time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from axonp2p.files import put_aside
from axonp2p.kinds.map.job_database import JobDatabase
from axonp2p.kinds.map.reduce_tree import ReduceTree

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    item INTEGER PRIMARY KEY, outcome TEXT NOT NULL, value BLOB NOT NULL, peer TEXT NOT NULL, agreed INTEGER NOT NULL,
    key TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX IF NOT EXISTS compared ON results (agreed) WHERE agreed > 1;
CREATE TABLE IF NOT EXISTS opinions (
    item INTEGER NOT NULL, peer TEXT NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL, chunk INTEGER NOT NULL,
    kind INTEGER NOT NULL, needed INTEGER NOT NULL, outcome TEXT NOT NULL, value BLOB NOT NULL, digest BLOB NOT NULL,
    flops INTEGER NOT NULL, milliseconds INTEGER NOT NULL, PRIMARY KEY (item, peer)
) STRICT;
CREATE TABLE IF NOT EXISTS outvoted (peer TEXT PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS tree (items INTEGER NOT NULL, fold INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS work (
    place TEXT PRIMARY KEY, item INTEGER NOT NULL, flops INTEGER NOT NULL, milliseconds INTEGER NOT NULL
) STRICT;
"""
_FAILED = "FROM results WHERE outcome = 'error'"
Came = Literal["value", "error", "cancelled"]
"""The sort of a result."""


@dataclass(frozen=True)
class ItemResult:
    """The result of one item."""

    item: int
    outcome: Came
    value: bytes
    """As it came: a value or an error, packed."""
    peer: str
    agreed: int = 1
    """How many peers gave it; 0: it is nobody's, such as the error that nobody could tell."""
    key: str = ""
    """Of the peer; empty where only its name is known."""


@dataclass(frozen=True)
class ItemOpinion:
    """The result of one peer for an item that more than one must find."""

    item: int
    peer: str
    """Its key."""
    name: str
    place: str
    """Its reservation and key: where its work is owed."""
    chunk: int
    group: int
    """Opinions of one item in the same group are equal."""
    needed: int
    """So many must be equal."""
    outcome: Came
    value: bytes
    """Empty where it was not read."""
    digest: bytes
    """Of outcome and value."""
    flops: int
    milliseconds: int


@dataclass(frozen=True)
class WorkDone:
    """Accepted work of one peer in one reservation."""

    place: str
    """Reservation and peer."""
    item: int
    """The last one."""
    flops: int
    milliseconds: int


class ResultsStore:
    """Of one job. Raises `SettingsError` of the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = JobDatabase(path, SCHEMA)

    def open(self) -> Path | None:
        """Make the tables; where the file is now that was there before, if it was damaged."""
        aside = None
        try:
            self._database.connection().execute("SELECT count(key) FROM results").fetchone()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise self._database.unusable(error) from error
            self.close()
            with self._database.telling():
                aside = put_aside(self.path)
                self._database.connection()
        return aside

    def keep(
        self, results: Sequence[ItemResult], work: Sequence[WorkDone], opinions: Sequence[ItemOpinion] = ()
    ) -> None:
        """All of it, or nothing. An item that has its result keeps it, and needs no opinions."""
        with self._database.opened() as database, database:
            database.executemany(
                "INSERT OR IGNORE INTO opinions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [astuple(one) for one in opinions],
            )
            database.executemany("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", map(astuple, results))
            database.executemany(
                "DELETE FROM opinions WHERE item = ?", [(one.item,) for one in results if one.agreed != 1]
            )
            database.executemany(
                "INSERT INTO work VALUES (?, ?, ?, ?) ON CONFLICT (place) DO UPDATE SET item = excluded.item,"
                " flops = flops + excluded.flops, milliseconds = milliseconds + excluded.milliseconds",
                [(one.place, one.item, one.flops, one.milliseconds) for one in work],
            )

    def finished(self) -> list[int]:
        """Items that have their result."""
        with self._database.opened() as database:
            return [item for (item,) in database.execute("SELECT item FROM results")]

    def failed(self) -> list[int]:
        """Those whose result is an error."""
        with self._database.opened() as database:
            return [item for (item,) in database.execute(f"SELECT item {_FAILED} ORDER BY item")]

    def failed_alone(self) -> list[int]:
        """Those whose result is an error that fewer than two peers gave."""
        with self._database.opened() as database:
            return [item for (item,) in database.execute(f"SELECT item {_FAILED} AND agreed < 2")]

    def read(self, first: int = 0) -> Iterator[ItemResult]:
        """All from an item on, in their order."""
        with self._database.opened() as database:
            for row in database.execute("SELECT * FROM results WHERE item >= ? ORDER BY item", (first,)):
                yield ItemResult(*row)

    def values(self, items: range) -> list[bytes]:
        """The values of items that follow each other and have their result."""
        with self._database.opened() as database:
            found = database.execute(
                "SELECT value FROM results WHERE item >= ? AND item < ? ORDER BY item", (items.start, items.stop)
            )
            return [value for (value,) in found]

    def keep_tree(self, tree: ReduceTree) -> None:
        """Results are merged: these are the calls."""
        with self._database.opened() as database, database:
            database.execute("DELETE FROM tree")
            database.execute("INSERT INTO tree VALUES (?, ?)", (tree.items, tree.fold))

    def tree(self) -> ReduceTree | None:
        """The calls of a job whose results are merged."""
        with self._database.opened() as database:
            row = database.execute("SELECT items, fold FROM tree").fetchone()
            return ReduceTree(*row) if row else None

    def forget(self, items: Iterable[int]) -> list[Came]:
        """Results and opinions of these are none any more; what the results were."""
        rows = [(item,) for item in items]
        with self._database.opened() as database, database:
            query = "SELECT outcome FROM results WHERE item = ?"
            found = [one for row in rows for (one,) in database.execute(query, row)]
            database.executemany("DELETE FROM results WHERE item = ?", rows)
            database.executemany("DELETE FROM opinions WHERE item = ?", rows)
            return found

    def opinions(self) -> list[ItemOpinion]:
        """All of items without a result, in the order in which they came; without their values."""
        with self._database.opened() as database:
            found = database.execute(
                "SELECT item, peer, name, place, chunk, kind, needed, outcome, x'', digest, flops, milliseconds"
                " FROM opinions ORDER BY rowid"
            )
            return [ItemOpinion(*row) for row in found]

    def opinion(self, item: int, peer: str) -> tuple[Came, bytes]:
        """The result that that peer found."""
        with self._database.opened() as database:
            found = database.execute("SELECT outcome, value FROM opinions WHERE item = ? AND peer = ?", (item, peer))
            outcome, value = found.fetchone()
            return outcome, value

    def outvoted(self) -> list[str]:
        """Keys of peers that are not believed."""
        with self._database.opened() as database:
            return [peer for (peer,) in database.execute("SELECT peer FROM outvoted")]

    def distrust(self, peer: str, name: str, *, again: bool) -> list[tuple[int, Came]]:
        """Forget that peer's opinions. The results that it alone gave; with `again`, these are results no more."""
        with self._database.opened() as database, database:
            database.execute("INSERT OR IGNORE INTO outvoted VALUES (?)", (peer,))
            database.execute("DELETE FROM opinions WHERE peer = ?", (peer,))
            alone, those = "FROM results WHERE agreed = 1 AND (key = ? OR key = '' AND peer = ?)", (peer, name)
            found = list(database.execute(f"SELECT item, outcome {alone} ORDER BY item", those))
            if again:
                database.execute(f"DELETE {alone}", those)
            return found

    def work(self) -> list[WorkDone]:
        """All that was accepted, from the job's beginning on."""
        with self._database.opened() as database:
            found = database.execute("SELECT place, item, flops, milliseconds FROM work")
            return [WorkDone(*row) for row in found]

    def close(self) -> None:
        """Harmless when it is not open. All is in the one file afterwards."""
        self._database.close()
