"""How the client writes: a reader, or a crash, finds the old file or the new one and nothing between."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from axonp2p.errors import SettingsError


def read_metrics(path: Path) -> list[dict[str, str]]:
    """The lines of a metrics.csv; none when there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` whole when all is written, or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            yield file
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def not_writable(path: Path, error: OSError) -> SettingsError:
    """What to tell of a disk that takes no more, or a folder that is not ours."""
    return SettingsError(
        f"cannot write to {error.filename or path}: {error.strerror or error}",
        fix="free some space, or choose another home with --home DIR",
    )


def put_in_place(fresh: Path, path: Path) -> None:
    """Move a finished file to its place once the disk has it: after a power cut there is the old one or the new one."""
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def in_order(columns: list[str]) -> list[str]:
    """Columns of metrics.csv as people read them: round and loss, the held-out metrics, then costs."""
    first, last = ["round", "loss"], ["samples", "seconds", "bytes"]
    between = [name for name in columns if name not in (*first, *last)]
    return [name for name in (*first, *between, *last) if name in columns]
