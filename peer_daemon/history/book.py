"""The history in one SQLite file: spans of time in one state, and what happened at one moment.

It may fail at any time (a full disk, a home that cannot be written) and is no reason to stop for: each method raises
`SettingsError` and the next one tries again. A file that is damaged is moved aside and a new one begun. Plain sqlite3:
sqlite-utils loads numpy, which an idle daemon does without.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axonp2p.disk_errors import texts_of_a_database
from axonp2p.errors import SettingsError
from axonp2p.files import put_aside
from axonp2p.logs import get_logger
from peer_daemon.control.status import HappeningTold, HistoryTold, SpanTold
from peer_daemon.history.spans import goes_on, laid_out, lasting

log = get_logger(__name__)

MOST_ROWS = 20_000
"""Of each kind, whatever strangers do to fill it; the oldest go first."""
MOST_LETTERS = 500
"""Of a sentence."""
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS spans (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        began REAL NOT NULL,      -- Unix seconds, as all times here
        ended REAL NOT NULL,      -- when it was last known to last
        state TEXT NOT NULL,
        why TEXT NOT NULL,
        sentence TEXT NOT NULL
    )""",
    """
    CREATE TABLE IF NOT EXISTS happenings (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        sentence TEXT NOT NULL,
        job TEXT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS spans_ended ON spans (ended)",
    "CREATE INDEX IF NOT EXISTS happenings_at ON happenings (at)",
)
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class HistoryBook:
    """Its methods touch the disk: call them in a thread; any number may call at once. All raise `SettingsError`."""

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self._path = path
        self._turn = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._span: SpanTold | None = None
        self._row: int | None = None
        """Of the present span; None while the disk does not have it."""

    def began(self, state: str, why: str, sentence: str, at: float) -> None:
        """From `at`, Unix seconds, this is the state; the one before ends. The same state and reason again go on."""
        with self._turn:
            before, row = self._span, self._row
            if before and (before.state, before.why) == (state, why):
                self._lasts(at)
                return
            # Known from now on, whether or not the disk takes it: `still` must not make the old one longer.
            self._span, self._row = (
                SpanTold(began=at, ended=at, state=state, why=why, sentence=sentence[:MOST_LETTERS]),
                None,
            )
            with self._open() as database, database:
                if before and row and goes_on(before, at):
                    database.execute("UPDATE spans SET ended = ? WHERE id = ?", [max(before.began, at), row])
                written = _insert_span(database, self._span)
            self._row = written

    def still(self, at: float) -> None:
        """The present state lasts until now at least. Nothing before the first `began`."""
        with self._turn:
            self._lasts(at)

    def happened(self, kind: str, sentence: str, at: float, job: str = "") -> None:
        """Something happened at `at`; `kind` as in `HappeningTold`."""
        with self._turn, self._open() as database, database:
            new = database.execute(
                "INSERT INTO happenings (at, kind, sentence, job) VALUES (?, ?, ?, ?)",
                [at, kind, sentence[:MOST_LETTERS], job],
            ).lastrowid
            database.execute("DELETE FROM happenings WHERE id <= ?", [(new or 0) - MOST_ROWS])

    def since(self, at: float) -> HistoryTold:
        """Spans that ended at `at` or later, and what happened since, oldest first."""
        with self._turn, self._open() as database:
            spans = database.execute(
                "SELECT began, ended, state, why, sentence FROM spans WHERE ended >= ? ORDER BY id", [at]
            ).fetchall()
            happenings = database.execute(
                "SELECT at, kind, sentence, job FROM happenings WHERE at >= ? ORDER BY at, id", [at]
            ).fetchall()
        return HistoryTold(
            spans=laid_out(SpanTold(**dict(row)) for row in spans),
            happenings=[HappeningTold(**dict(row)) for row in happenings],
        )

    def forget(self, before: float) -> None:
        """Remove what was over before `before`."""
        with self._turn, self._open() as database, database:
            database.execute("DELETE FROM spans WHERE ended < ? AND id IS NOT ?", [before, self._row])
            database.execute("DELETE FROM happenings WHERE at < ?", [before])

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._turn:
            self._let_go()

    def _lasts(self, at: float) -> None:
        if self._span is None:
            return
        longer = lasting(self._span, at)
        if longer.began != self._span.began:
            self._row = None
        self._span = longer
        with self._open() as database, database:
            if self._row is None:
                written = _insert_span(database, longer)
            else:
                written = self._row
                database.execute("UPDATE spans SET ended = ? WHERE id = ?", [longer.ended, written])
        self._row = written

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._database is None:
                self._database = self._opened()
            yield self._database
        except (sqlite3.Error, OSError) as error:
            self._let_go()
            raise SettingsError(
                f"the history cannot be kept in {self._path}",
                cause=str(error),
                fix=f"see that the disk is not full and that {self._path.parent} can be written",
            ) from error

    def _opened(self) -> sqlite3.Connection:
        try:
            with texts_of_a_database():
                return _connect(self._path)
        except sqlite3.DatabaseError as error:
            # The lower byte is the kind of error, the others its details.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                raise
            aside = put_aside(self._path)
            log.warning("the history was damaged; a new one begins", reason=str(error), old=str(aside))
            self._row = None
            return _connect(self._path)

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA journal_mode=wal")
        # After a power cut the last minute may be missing, the file is whole; and no flush keeps a disk awake.
        database.execute("PRAGMA synchronous=normal")
        found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            damage = sqlite3.DatabaseError(found)
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage
        with database:
            for table in _TABLES:
                database.execute(table)
    except BaseException:
        database.close()
        raise
    return database


def _insert_span(database: sqlite3.Connection, span: SpanTold) -> int | None:
    new = database.execute(
        "INSERT INTO spans (began, ended, state, why, sentence) VALUES (?, ?, ?, ?, ?)",
        [span.began, span.ended, span.state, span.why, span.sentence],
    ).lastrowid
    database.execute("DELETE FROM spans WHERE id <= ?", [(new or 0) - MOST_ROWS])
    return new
