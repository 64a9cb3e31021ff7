"""The findings of this client on the work of peers, over all its jobs: one SQLite file in its home.

Only its own checks are in it, each with the job that it comes from. Nobody else's word enters, so nobody can praise
its own keys or blacken others'.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from axonp2p.disk_errors import fix_of, texts_of_a_database
from axonp2p.errors import SettingsError
from axonp2p.identity.peer_id import PeerId
from axonp2p.verification.rates import PROBATION, Trust

_TABLE = """CREATE TABLE IF NOT EXISTS keys (
    peer TEXT PRIMARY KEY,
    passed INTEGER NOT NULL DEFAULT 0,
    checks INTEGER NOT NULL DEFAULT 0,
    convicted_at REAL,
    job TEXT NOT NULL DEFAULT '',
    why TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID"""
_WAITING = "CREATE TABLE IF NOT EXISTS convictions (handed_in BLOB PRIMARY KEY) WITHOUT ROWID"
TRUST_FILE = "trust.db"
"""In a client's home."""
_BUSY_S = 10.0


@dataclass(frozen=True)
class KnownKey:
    """The facts known of one key."""

    peer: PeerId
    passed: int = 0
    """Checks in a row that its work has passed."""
    checks: int = 0
    """All that came to an end."""
    convicted_at: float | None = None
    """Unix time; None: it is not."""
    job: str = ""
    """In which it was convicted."""
    why: str = ""

    @property
    def trust(self) -> Trust:
        """As `checking.rates` needs it; who was convicted is not hired at all."""
        return Trust(self.passed)

    @property
    def in_words(self) -> str:
        """For a table."""
        if self.convicted_at is not None:
            return "convicted"
        if not self.checks:
            return "new"
        return f"{self.passed} passed" if self.passed >= PROBATION else f"{self.passed} of {PROBATION}"


def known_of(peer: PeerId, book: Mapping[PeerId, KnownKey]) -> KnownKey:
    """The standing of a key in the book (`TrustBook.all`): most keys are new."""
    return book.get(peer, KnownKey(peer))


class TrustBook:
    """One client's. Raises `SettingsError` when the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[PeerId, KnownKey]:
        """Every key that was ever checked."""
        with self._opened() as database:
            rows = database.execute("SELECT peer, passed, checks, convicted_at, job, why FROM keys").fetchall()
            return {known.peer: known for known in (_known(row) for row in rows)}

    def convicted(self) -> frozenset[PeerId]:
        """The peers that are passed over."""
        return frozenset(peer for peer, known in self.all().items() if known.convicted_at is not None)

    def passed(self, peer: PeerId) -> None:
        """A check found its work as it had said."""
        self._change("UPDATE keys SET checks = checks + 1, passed = passed + 1 WHERE peer = ?", peer)

    def doubted(self, peer: PeerId) -> None:
        """A check came to no such end, or others did not find what it said of somebody: it begins anew."""
        self._change("UPDATE keys SET checks = checks + 1, passed = 0 WHERE peer = ?", peer)

    def convict(self, peer: PeerId, job: str, why: str, now: float) -> None:
        """It lied in this job. `now` is Unix time. A conviction stays until `pardon`."""
        self.doubted(peer)
        self._change("UPDATE keys SET convicted_at = ?, job = ?, why = ? WHERE peer = ?", peer, now, job, why)

    def add_conviction(self, handed_in: bytes) -> None:
        """An encoded `VoidingHandedIn` that no tracker has yet."""
        with self._opened() as database:
            database.execute("INSERT OR IGNORE INTO convictions VALUES (?)", (handed_in,))

    def convictions(self) -> list[bytes]:
        """All that no tracker has yet."""
        with self._opened() as database:
            return [data for (data,) in database.execute("SELECT handed_in FROM convictions")]

    def handed_in(self, handed_in: bytes) -> None:
        """A tracker has it, or will never take it."""
        with self._opened() as database:
            database.execute("DELETE FROM convictions WHERE handed_in = ?", (handed_in,))

    def pardon(self, peer: PeerId) -> bool:
        """Forget all that is known of a key; whether anything was."""
        with self._opened() as database:
            return database.execute("DELETE FROM keys WHERE peer = ?", (peer,)).rowcount > 0

    def _change(self, change: str, peer: PeerId, *values: object) -> None:
        with self._opened() as database:
            database.execute("INSERT INTO keys (peer) VALUES (?) ON CONFLICT DO NOTHING", (peer,))
            database.execute(change, (*values, peer))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=_BUSY_S)
            try:
                with texts_of_a_database(), database:
                    database.execute(_TABLE)
                    database.execute(_WAITING)
                    yield database
            finally:
                database.close()
        except (sqlite3.Error, OSError) as error:
            damaged = f"move {self._path.name} away; trust begins again, and convicted peers may be hired again"
            raise SettingsError(
                f"{self._path} cannot be used: {error}", fix=fix_of(error, self._path, damaged)
            ) from error


def _known(row: tuple[object, ...]) -> KnownKey:
    """SQLite keeps what a disk has made of a row, of whatever kind that is now."""
    try:
        return msgspec.convert(dict(zip(KnownKey.__dataclass_fields__, row, strict=True)), KnownKey)
    except msgspec.ValidationError as error:
        damaged = sqlite3.DatabaseError(f"a row is damaged: {error}")
        damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damaged from error
