"""A SQLite file of a job: durable, opened when it is used, its errors told with what helps (a door).

WAL with synchronous=FULL: a transaction that has ended survives a power cut. Everything here blocks.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from axonp2p.disk_errors import fix_of, not_writable
from axonp2p.errors import SettingsError


class JobDatabase:
    """One file. Any thread may use it, one at a time."""

    def __init__(self, path: Path, schema: str) -> None:
        """`schema`: the statements that make the tables where they are not there yet."""
        self.path = path
        self._schema = schema
        self._database: sqlite3.Connection | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """The connection, whose errors are told. A transaction is the caller's: `with connection:`."""
        with self.telling():
            yield self.connection()

    def connection(self) -> sqlite3.Connection:
        """The connection itself. Raises what `sqlite3` raises."""
        if self._database is None:
            self._database = database = sqlite3.connect(self.path, check_same_thread=False, timeout=30)
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            with database:
                database.executescript(self._schema)
        return self._database

    def close(self) -> None:
        """Harmless when it is not open. All is in the one file afterwards; it is opened again when it is used."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()
            self._database = None

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Raises `SettingsError`, with its fix, where the disk or the file fails within."""
        try:
            yield
        except sqlite3.Error as error:
            raise self.unusable(error) from error
        except OSError as error:
            raise not_writable(self.path, error) from error

    def unusable(self, error: sqlite3.Error) -> SettingsError:
        """The error to raise for one of SQLite."""
        return SettingsError(f"cannot use {self.path}: {error}", fix=fix_of(error, self.path))
