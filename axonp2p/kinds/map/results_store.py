"""results.sqlite: one result for each item, and what peers are owed for them, in one transaction.

WAL with synchronous=FULL: what `keep` has returned from survives a power cut. The item's number is the primary key, so
nothing can give an item a second result. Work adds up by peer and reservation and is never taken off: what is paid is
in job.json, in the same change that numbers the receipts, so no crash pays twice or forgets. Everything here blocks;
one thread at a time.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from axonp2p.disk_errors import fix_of
from axonp2p.errors import SettingsError
from axonp2p.files import put_aside

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    item INTEGER PRIMARY KEY, outcome TEXT NOT NULL, value BLOB NOT NULL, peer TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS work (
    place TEXT PRIMARY KEY, item INTEGER NOT NULL, flops INTEGER NOT NULL, milliseconds INTEGER NOT NULL
) STRICT;
"""
Came = Literal["value", "error", "cancelled"]
"""What a result is."""


@dataclass(frozen=True)
class ItemResult:
    """The result of one item."""

    item: int
    outcome: Came
    value: bytes
    """As it came: a value or an error, packed."""
    peer: str


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
        self._database: sqlite3.Connection | None = None

    def open(self) -> Path | None:
        """Make the tables; where the file is now that was there before, if it was damaged."""
        aside = None
        try:
            self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise self._wrong(error) from error
            self.close()
            with self._told():
                aside = put_aside(self.path)
                for rest in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + rest).unlink(missing_ok=True)
                self._connect()
        return aside

    def keep(self, results: Sequence[ItemResult], work: Sequence[WorkDone]) -> None:
        """All of it, or nothing. An item that has its result keeps it."""
        with self._told():
            database = self._open()
            with database:
                database.executemany(
                    "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)",
                    [(one.item, one.outcome, one.value, one.peer) for one in results],
                )
                database.executemany(
                    "INSERT INTO work VALUES (?, ?, ?, ?) ON CONFLICT (place) DO UPDATE SET item = excluded.item,"
                    " flops = flops + excluded.flops, milliseconds = milliseconds + excluded.milliseconds",
                    [(one.place, one.item, one.flops, one.milliseconds) for one in work],
                )

    def finished(self) -> list[int]:
        """Items that have their result."""
        with self._told():
            return [item for (item,) in self._open().execute("SELECT item FROM results")]

    def failed(self) -> list[int]:
        """Those whose result is an error."""
        with self._told():
            found = self._open().execute("SELECT item FROM results WHERE outcome = 'error' ORDER BY item")
            return [item for (item,) in found]

    def read(self) -> Iterator[ItemResult]:
        """All, in the order of the items."""
        with self._told():
            for row in self._open().execute("SELECT item, outcome, value, peer FROM results ORDER BY item"):
                yield ItemResult(*row)

    def work(self) -> list[WorkDone]:
        """All that was accepted, from the job's beginning on."""
        with self._told():
            found = self._open().execute("SELECT place, item, flops, milliseconds FROM work")
            return [WorkDone(*row) for row in found]

    def close(self) -> None:
        """Harmless when it is not open. All is in the one file afterwards."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()
            self._database = None

    def _connect(self) -> None:
        self._database = database = sqlite3.connect(self.path, check_same_thread=False, timeout=30)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        with database:
            database.executescript(SCHEMA)
        database.execute("SELECT count(*) FROM results").fetchone()

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._connect()
        assert self._database is not None
        return self._database

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._wrong(error) from error
        except OSError as error:
            raise SettingsError(f"cannot write to {self.path}: {error}", fix=fix_of(error, self.path)) from error

    def _wrong(self, error: sqlite3.Error) -> SettingsError:
        return SettingsError(f"cannot use {self.path}: {error}", fix=fix_of(error, self.path))
