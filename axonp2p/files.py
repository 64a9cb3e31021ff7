"""Small files and locks: whoever reads finds the old file or the new one, and one process at a time holds a lock.

A damaged file is put aside under another name, never removed. How many files may be open is asked for here too.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from axonp2p.errors import AlreadyRunning, SettingsError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import resource

DAMAGED = ".damaged"
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""For `os.open`; Windows has no such flag."""
_LOCKED_BYTE = 1024
"""Of a lock file on Windows."""


def raise_descriptor_limit() -> None:
    """Let this process have as many files and connections open as the system allows: 1,024 are soon used up."""
    if sys.platform != "win32":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int | None:
    """How many files and connections this process may have open; None where nothing limits them, as on Windows."""
    if sys.platform == "win32":
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def put_aside(path: Path) -> Path:
    """Rename a damaged file, so that nothing reads it and nothing of it is lost; where it is now. Raises `OSError`."""
    names = (path.with_name(f"{path.name}{DAMAGED}{number or ''}") for number in itertools.count())
    aside = next(name for name in names if not name.exists())
    path.replace(aside)
    take_wal_along(path, aside)
    return aside


def take_wal_along(path: Path, aside: Path) -> None:
    """Rename the files that SQLite keeps beside a database: it would take them for those of the next one at `path`."""
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).replace(aside.with_name(aside.name + end))


@contextmanager
def replacing(path: Path, *, lasting: bool = False) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` whole when all is written, or not at all.

    `lasting`: the disk has it before it takes its place, as `put_in_place` says.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Its name can be guessed: what a crash left there, or a link that somebody put there, goes first.
        fresh.unlink(missing_ok=True)
        with fresh.open("xb") as file:
            yield file
        if lasting:
            put_in_place(fresh, path)
        else:
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` in `path`, as `replacing` does."""
    with replacing(path) as file:
        file.write(content)


def put_in_place(fresh: Path, path: Path) -> None:
    """Move a finished file to its place once the disk has it: after a power cut there is the old one or the new one."""
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def check_room(folder: Path, name: str, count: int) -> None:
    """Raises `SettingsError` unless the disk of `folder` has room for so many bytes more, of what is `name` in it."""
    if count > shutil.disk_usage(folder).free:
        raise SettingsError(f"the disk has no room for {count:,} bytes of {folder / name}", fix="free some space")


def sync_folder(path: Path) -> None:
    """Returns once the names in this folder are on the disk. Windows has no such promise to ask for."""
    if sys.platform == "win32":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def sync_tree(path: Path) -> None:
    """The same of this folder and all folders below it."""
    for folder in (path, *(below for below in path.rglob("*") if below.is_dir())):
        sync_folder(folder)


@contextmanager
def locked(path: Path, taken: str, fix: str) -> Iterator[None]:
    """Hold the lock `path`; the kernel lets go of it when the process dies, however it dies.

    Raises `AlreadyRunning` with the message `taken` and the holder's pid when another process has it, and
    `SettingsError` when the file cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        message = f"cannot write to {path.parent}: {error.strerror}"
        raise SettingsError(message, fix="choose another folder with --home DIR") from error
    try:
        try:
            _take(descriptor)
        except (BlockingIOError, PermissionError) as error:
            holder = os.read(descriptor, 20).decode(errors="replace").strip()
            raise AlreadyRunning(taken + (f" (pid {holder})" if holder.isdigit() else ""), fix=fix) from error
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    """Lock the open file. Raises `BlockingIOError` (`PermissionError` on Windows) when another process has it."""
    if sys.platform == "win32":
        # Nobody else may read what is locked there: one byte behind all that is ever written, not the holder's pid.
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
