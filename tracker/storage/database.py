"""The tracker's SQLite file: one thread writes, and what waits together is committed together.

A commit ends with a write to the disk (WAL, synchronous=FULL), which takes as long for one change as for a hundred. So
changes queue up, the writer takes all that wait, commits once, and only then are their callers told: whatever a
caller was told is on the disk, and the event loop never waits for it. A change that is refused leaves no trace and
does not touch the others.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlite_utils

from axonp2p.disk_errors import texts_of_a_database
from axonp2p.errors import AxonError, Busy, LogDamaged, SettingsError
from axonp2p.logs import get_logger
from tracker.storage.ledger_tables import make_ledger_tables

log = get_logger(__name__)

SCHEMA_VERSION = 7
MOST_TOGETHER = 256
"""Changes in one commit."""
CACHE_KIB = 32 * 1024
"""SQLite's memory for parts of the file, for each of the two connections: the ends of its indexes fit in."""
MOST_WAITING = 4096
"""Changes that may wait; over that, requests are refused as busy."""
MOST_READS_WAITING = 1024
"""The same for what is read, some of which goes through a million rows."""

TOLD_EVERY_S = 60.0
"""A disk that fails for one caller and not for the next is told in the log this often."""
STORAGE_FIX = "make room on this disk, or mount it so that it can be written; nothing that was acknowledged is lost"

T = TypeVar("T")
Work = Callable[[sqlite_utils.Database], T]


@dataclass(frozen=True)
class _Change:
    work: Work[Any]
    size: int
    done: asyncio.Future[Any]


@dataclass(frozen=True)
class _Outcome:
    change: _Change
    value: Any = None
    error: Exception | None = None


class Database:
    """Rows, tokens and receipts in one file.

    `committed` is told, in the writer's thread, how many changes each commit had and how many seconds it took.
    """

    def __init__(self, path: Path, committed: Callable[[int, float], None] = lambda changes, seconds: None) -> None:
        """Open or make the file. Raises `SettingsError`."""
        self._path = path
        self._committed = committed
        self.before_told: Work[None] = lambda database: None
        """Runs in the writer's thread after each commit, before its callers are told that it is on the disk."""
        self._told_at = -TOLD_EVERY_S
        self.trouble = ""
        """Why nothing can be stored at present; empty when it can."""
        self._changes: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._writing = _open(path)
        self._reading = _open(path)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="database-reader")
        self._reads = 0
        self._writer: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def folder(self) -> Path:
        """Where the file lies."""
        return self._path.parent

    def load(self, work: Work[T]) -> T:
        """Read before anything is served; blocks. Raises `SettingsError` when the file is damaged."""
        try:
            with texts_of_a_database():
                return work(self._reading)
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error
        except (TypeError, ValueError) as error:  # a damaged row: what stands there is not of its column's kind
            raise _unusable(self._path, sqlite3.DatabaseError(f"its rows are damaged: {error}")) from error

    def start(self) -> None:
        """Begin to write, for callers on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._writer = threading.Thread(target=self._write_all, name="database-writer")
        self._writer.start()

    async def write(self, work: Work[T], size: int = 1) -> T:
        """Run `work` in the writer's thread, where it must not wait; its result comes once all is on the disk.

        `size` is how many callers it serves, for those who count.

        Raises what `work` raises, with nothing changed, and `Busy` when the disk takes no more.
        """
        if self._changes.qsize() >= MOST_WAITING:
            raise Busy("too much waits to be stored", fix="ask again in a few seconds")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._changes.put(_Change(work, size, done))
        return await done

    async def read(self, work: Work[T]) -> T:
        """The result of `work`, which reads from all that is committed, in a thread of its own.

        Raises `Busy` when the disk fails, or too much waits to be read.
        """
        if self._reads >= MOST_READS_WAITING:
            raise Busy("too much waits to be read", fix="ask again in a few seconds")
        self._reads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, work, self._reading)
        except sqlite3.Error as error:
            raise _refused(error) from error
        finally:
            self._reads -= 1

    async def close(self) -> None:
        """Write what waits and close the file."""
        if self._writer is not None:
            self._changes.put(None)
            await asyncio.to_thread(self._writer.join)
            self._writer = None
        self._readers.shutdown()
        self._reading.close()
        self._writing.close()

    def _write_all(self) -> None:
        assert self._loop is not None
        last = False
        while not last:
            batch = [self._changes.get()]
            while len(batch) < MOST_TOGETHER and not self._changes.empty():
                batch.append(self._changes.get())
            last = None in batch
            outcomes = self._commit([change for change in batch if change is not None])
            self._loop.call_soon_threadsafe(_tell, outcomes)

    def _commit(self, changes: list[_Change]) -> list[_Outcome]:
        started = time.monotonic()
        try:
            with self._writing.atomic():
                outcomes = [self._apply(change) for change in changes]
        except sqlite3.Error as error:
            self._cannot_store(str(error))
            return [_Outcome(change, error=_refused(error)) for change in changes]
        if changes:
            self.before_told(self._writing)
            self._can_store()
            self._committed(sum(change.size for change in changes), time.monotonic() - started)
        return outcomes

    def _cannot_store(self, reason: str) -> None:
        """Said once for each reason, however many callers hear of it."""
        now = time.monotonic()
        if reason != self.trouble and now >= self._told_at + TOLD_EVERY_S:
            self._told_at = now
            log.error("cannot store, everybody is refused", database=str(self._path), reason=reason, fix=STORAGE_FIX)
        self.trouble = reason

    def _can_store(self) -> None:
        if self.trouble:
            self.trouble = ""
            log.info("can store again", database=str(self._path))

    def _apply(self, change: _Change) -> _Outcome:
        try:
            with self._writing.atomic():
                return _Outcome(change, value=change.work(self._writing))
        except sqlite3.Error:
            raise  # the disk's trouble is everybody's: nothing of this batch counts
        except Exception as error:  # the edge of a task: a mistake in one change is its caller's, not the writer's
            return _Outcome(change, error=error)


def _tell(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        done = outcome.change.done
        if done.done():
            continue  # its caller gave up
        if outcome.error is not None:
            done.set_exception(outcome.error)
        else:
            done.set_result(outcome.value)


def _open(path: Path) -> sqlite_utils.Database:
    try:
        with texts_of_a_database():
            return _opened(path)
    except sqlite3.Error as error:
        raise _unusable(path, error) from error


def _opened(path: Path) -> sqlite_utils.Database:
    database = sqlite_utils.Database(sqlite3.connect(path, check_same_thread=False), execute_plugins=False)
    database.enable_wal()
    database.execute("PRAGMA synchronous=FULL")
    database.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, SCHEMA_VERSION):  # 0: a new file
        age = "a newer" if version > SCHEMA_VERSION else "an older"
        raise SettingsError(
            f"{path} was written by {age} axon-tracker",
            cause=f"its form is {version}, this program knows {SCHEMA_VERSION}",
            fix="install that version, or name another folder with --home DIR",
        )
    _make_tables(database)
    return database


def _make_tables(database: sqlite_utils.Database) -> None:
    with database.atomic():
        table = database.table
        table("rows").create(
            {"place": int, "peer": str, "facts": bytes, "profile": bytes, "body": bytes},
            pk="place",
            if_not_exists=True,
        )
        tokens = table("tokens")
        tokens.create(
            {"uuid": str, "issuer": str, "client": str, "source": str, "wish": bytes, "expires": int}
            | {"payload": bytes, "signature": bytes, "used": int, "promised": bytes, "issued": int, "peers": int},
            pk="uuid",
            not_null={"used", "issued", "peers"},
            defaults={"used": 0, "issued": 0, "peers": 0},
            if_not_exists=True,
        )
        tokens.create_index(["source", "expires"], if_not_exists=True)
        tokens.create_index(["client", "expires"], if_not_exists=True)
        tokens.create_index(["used", "issued"], if_not_exists=True)
        for whose in ("source", "client"):  # with all that is asked for: the rows themselves are long
            tokens.create_index([whose, "issued", "used", "peers"], if_not_exists=True)
        make_ledger_tables(database)
        database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def _unusable(path: Path, error: sqlite3.Error) -> AxonError:
    restore = "axon-tracker restore FILE    puts a backup back; or name another folder with --home DIR"
    fix = STORAGE_FIX if _is_of_the_disk(error) else restore
    return SettingsError(f"the database {path} cannot be used", cause=str(error), fix=fix)


def _is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether the file is whole, and the disk takes nothing more."""
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN"))


def _refused(error: sqlite3.Error) -> AxonError:
    # The reason is the operator's business and stands in the log.
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return LogDamaged("this tracker's database is damaged", fix="ask another tracker")
    return Busy("this tracker cannot store anything at present", fix="ask another tracker")
