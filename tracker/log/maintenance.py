"""`axon-tracker check`, `backup`, `restore`, `new-log`: the log on the disk proved, copied, put back, begun anew."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlite_utils

from axonp2p.errors import AxonError, LogDamaged, NotFound, SettingsError
from axonp2p.files import locked, put_in_place, take_wal_along
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.identity.peer_id import PeerId
from axonp2p.ledger.log_client import heads
from axonp2p.ledger.log_messages import HeadsTold
from axonp2p.ledger.merkle import root
from axonp2p.ledger.tree_head import TreeHead, open_head, why_forked
from axonp2p.settings import TrackerSettings
from axonp2p.table.tracker_client import line_to
from axonp2p.transport.address import PinnedAddress
from tracker.replication.own_tracker_row import begin_new_log
from tracker.replication.remembered_trackers import RememberedTrackers
from tracker.storage.last_head import LastHead
from tracker.storage.log_check import Problem, check_log, is_lacking
from tracker.storage.log_store import log_size, nodes

OTHERS_WITHIN_S = 8.0
MOST_TOLD = 100
"""Problems in words; all of them are counted."""


@dataclass
class LogChecked:
    """The outcome of a look at a whole log."""

    entries: int
    root: str
    log: str
    problems: list[Problem] = field(default_factory=list)
    more: int = 0
    """Problems that are not among these."""
    asked: list[str] | None = None
    """Other trackers that were asked; None when nobody was to be."""
    compared: list[str] = field(default_factory=list)
    """Other trackers whose heads of this log fit."""

    def add(self, problems: Iterable[Problem]) -> None:
        """Note what else is wrong."""
        for problem in problems:
            if len(self.problems) < MOST_TOLD:
                self.problems.append(problem)
            else:
                self.more += 1


def check_home(home: Path, settings: TrackerSettings, *, offline: bool) -> LogChecked:
    """The log of the tracker with this home, which may run; its heads at other trackers too. Raises `NotFound`."""
    path, tracker = home / "tracker.db", _tracker_of(home)
    # Before the database is opened: a tracker that runs may add to both, and only grows.
    last = LastHead(home, tracker).read()
    with _opened(path) as database:
        checked = _check(database, path, tracker)
        checked.add(_compare_last(database, last, checked.log))
        if not offline:
            remembered = RememberedTrackers(home / "trackers.json").read().trackers
            others = dict.fromkeys([*settings.trackers, *remembered])
            checked.asked = [PinnedAddress.parse(address).host_port for address in others]
            for called, told in asyncio.run(_ask_all(others)):
                problems = list(_compare(database, told, tracker, checked.log, called))
                checked.add(problems)
                checked.compared += [] if problems else [called]
    return checked


def check_file(path: Path, home: Path) -> LogChecked:
    """The log in a file: a backup, say."""
    tracker = _tracker_of(home)
    with _opened(path) as database:
        return _check(database, path, tracker)


def back_up(home: Path, file: Path) -> LogChecked:
    """Copy the database, also while the tracker runs, and check the copy. Raises `LogDamaged` when it is not good."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with _opened(home / "tracker.db") as database:
            _copy(database, fresh)
        checked = _good(check_file(fresh, home), home / "tracker.db")
        put_in_place(fresh, file)
        return checked
    except OSError as error:
        raise SettingsError(f"cannot write {file}: {error.strerror}", fix="name another file") from error
    finally:
        fresh.unlink(missing_ok=True)


def restore(home: Path, file: Path) -> tuple[LogChecked, Path | None]:
    """Put a backup in the database's place; returns what is in it, and where the old database is now.

    It begins a new log: heads that were signed after the backup was made cannot be kept. Raises `LogDamaged` when the
    backup is not good, and then touches nothing.
    """
    with locked(home / "lock", f"a tracker runs with {home}", fix="stop it first"):
        checked = _good(check_file(file, home), file)
        path, last = home / "tracker.db", LastHead(home, _tracker_of(home))
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with _opened(file) as database:
                _copy(database, fresh)
            with closing(sqlite3.connect(fresh)) as connection, connection:
                begin_new_log(sqlite_utils.Database(connection, execute_plugins=False))
            aside = _put_aside(path)
            last.put_aside()
            # Until here the old database is in its place, from here on the new one is.
            put_in_place(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
        return checked, aside


def new_log(home: Path) -> LogChecked:
    """Go on with what is there, under a new name, though more was acknowledged; nothing in it may be damaged.

    Raises `LogDamaged` when there is something else wrong than entries that are lacking at its end.
    """
    with locked(home / "lock", f"a tracker runs with {home}", fix="stop it first"):
        path, last = home / "tracker.db", LastHead(home, _tracker_of(home))
        last.put_aside()
        with closing(sqlite3.connect(path)) as connection, connection:
            begin_new_log(sqlite_utils.Database(connection, execute_plugins=False))
        return check_file(path, home)


def _tracker_of(home: Path) -> PeerId:
    if not (home / "tracker.key").exists():
        raise NotFound(f"there is no tracker.key in {home}", fix="name the tracker's folder with --home DIR")
    return load_or_create_key(home / "tracker.key").peer_id


@contextmanager
def _opened(path: Path) -> Iterator[sqlite_utils.Database]:
    """The database as it is at this moment, whatever is written meanwhile; nothing in it is changed."""
    if not path.exists():
        raise NotFound(f"there is no database {path}", fix="axon-tracker run    makes one; or name another")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("BEGIN")
            yield sqlite_utils.Database(connection, execute_plugins=False)
    except sqlite3.Error as error:
        raise _damaged(path, [Problem(f"SQLite cannot read it: {error}")], 0) from error


def _check(database: sqlite_utils.Database, path: Path, tracker: PeerId) -> LogChecked:
    try:
        name = database.execute("SELECT name FROM name").fetchone()
        size = log_size(database)
    except sqlite3.OperationalError as error:  # there are no such tables
        raise NotFound(f"{path} holds no log: {error}", fix="axon-tracker run    begins one") from error
    log = str(name[0]) if name else ""
    checked = LogChecked(size, "", log)
    try:
        checked.add(check_log(database, tracker, log))
        checked.root = root(size, nodes(database)).hex()
    except LogDamaged as error:
        checked.add([Problem(error.message)])
    except sqlite3.Error as error:
        checked.add([Problem(f"SQLite cannot read the file any further: {error}")])
    return checked


def _compare_last(database: sqlite_utils.Database, last: TreeHead | None, log: str) -> Iterator[Problem]:
    """The entries acknowledged last must be there."""
    try:
        if last is not None and is_lacking(database, last, log):
            size = log_size(database)
            text = f"{last.size} entries were acknowledged (last-head says so), and {size} are left"
            yield Problem(text if last.log == log else f"{text}, in a log of another name")
    except LogDamaged as error:
        yield Problem(error.message)
    except sqlite3.Error as error:
        yield Problem(f"SQLite cannot read the file any further: {error}")


async def _ask_all(addresses: Iterable[str]) -> list[tuple[str, HeadsTold]]:
    answers = await asyncio.gather(*(_ask(PinnedAddress.parse(address)) for address in addresses))
    return [answer for answer in answers if answer is not None]


async def _ask(address: PinnedAddress) -> tuple[str, HeadsTold] | None:
    async with line_to(address) as line:
        try:
            async with asyncio.timeout(OTHERS_WITHIN_S):
                return address.host_port, await heads(line)
        except (AxonError, TimeoutError):
            return None  # what it would say it says later: `compared` shows who was heard


def _compare(
    database: sqlite_utils.Database, told: HeadsTold, tracker: PeerId, log: str, called: str
) -> Iterator[Problem]:
    """The entries that another tracker saw of this log must be its beginning."""
    for signed in told.seen:
        if signed.signer != tracker:
            continue
        head = open_head(signed)
        if head.log == log and (head.size > log_size(database) or root(head.size, nodes(database)) != head.root):
            text = f"{called} holds a head of {head.size} entries that this tracker signed, and this log is another"
            yield Problem(text)
    for evidence in told.evidence:
        if evidence.second.signer == tracker:
            yield Problem(f"{called} holds evidence against this tracker: {why_forked(evidence)}")


def _good(checked: LogChecked, path: Path) -> LogChecked:
    if checked.problems:
        raise _damaged(path, checked.problems, checked.more)
    return checked


def _damaged(path: Path, problems: list[Problem], more: int) -> LogDamaged:
    first = problems[0].text
    count = len(problems) + more - 1
    return LogDamaged(
        f"the log in {path} is not as it was signed: {first}{f', and {count} more problems' if count else ''}",
        fix="axon-tracker check    names every entry; axon-tracker restore FILE    puts a backup back",
    )


def _copy(database: sqlite_utils.Database, to: Path) -> None:
    to.unlink(missing_ok=True)
    with closing(sqlite3.connect(to)) as copy:
        database.conn.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, which nothing beside it belongs to
    to.chmod(0o600)


def _put_aside(path: Path) -> Path | None:
    """Keep the old database under another name, beside itself; with all that SQLite had not yet moved into it."""
    if not path.exists():
        return None
    number = 1
    while (aside := path.with_name(f"{path.name}.before-{number}")).exists():
        number += 1
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        pass  # it is damaged: that is why another is put in its place
    os.link(path, aside)
    take_wal_along(path, aside)
    return aside
