"""Fixes for a file that cannot be read or written: a full disk is not a damaged file (pure)."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axonp2p.errors import SettingsError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
"""SQLite calls it a plain error when tables are not what our statements expect, and Python when a text is no UTF-8."""


def fix_of(error: OSError | sqlite3.Error, path: Path, when_damaged: str = "") -> str:
    """The fix to show. `when_damaged`: what helps when the file's content is what is wrong, and only then."""
    if isinstance(error, OSError):
        full, closed = error.errno in _FULL, error.errno in _CLOSED
        damaged = False
    else:
        # The low byte is the kind; what is above it is detail.
        kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        full, closed = kind == sqlite3.SQLITE_FULL, kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
        damaged = kind in _DAMAGED
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return "another program has held it for long: end that one, or try again"
    folder = path.parent
    if full:
        return f"the disk is full: free some space on it (df -h {folder}) and try again; nothing has to be moved away"
    if closed:
        return f"let this user write to {folder}, or choose another home with --home DIR"
    if damaged and when_damaged:
        return when_damaged
    return f"free some space on the disk of {folder} (df -h {folder}), or choose another home with --home DIR"


def not_writable(path: Path, error: OSError) -> SettingsError:
    """The error for a disk that takes no more, or a folder that is not ours."""
    return SettingsError(
        f"cannot write to {error.filename or path}: {error.strerror or error}",
        fix=fix_of(error, Path(error.filename or path)),
    )


@contextmanager
def texts_of_a_database() -> Iterator[None]:
    """Raises `sqlite3.DatabaseError` where damage has made a text of the file, or SQLite's word on it, no text."""
    try:
        yield
    except UnicodeDecodeError as error:
        damaged = sqlite3.DatabaseError(f"a text in it is damaged: {error.reason}")
        damaged.sqlite_errorcode, damaged.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
        raise damaged from error
