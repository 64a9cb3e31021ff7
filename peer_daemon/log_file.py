"""HOME/axon-peer.log: where it lies, its last lines, and what is added to it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from axonp2p.console import error_text
from axonp2p.errors import AxonError, NotFound

_PIECE = 64 * 1024
"""Bytes that are read at a time while a file is followed."""


def log_path(home: Path) -> Path:
    """Where the daemon with this home writes what it does."""
    return home / "axon-peer.log"


def last_lines(path: Path, most: int) -> list[str]:
    """The last lines of it. Raises `NotFound` when nothing was ever written."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, maxlen=most)]
    except OSError as error:
        raise NotFound(
            "this peer has no log yet", cause=f"{path}: {error.strerror}", fix="axon-peer run    starts a peer"
        ) from error


def leave_last_words(path: Path, error: AxonError, now: datetime) -> None:
    """Add why the daemon ended: nobody sees the terminal of one that was started at login."""
    # A disk that takes nothing has been told of on stderr; this file is not the place to say it.
    with suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.write(f"{now:%Y-%m-%d %H:%M:%S} {error_text(error)}\n")


class Follower:
    """Reads what is added to a log, also after the daemon began it anew. It begins at the present end."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` when the file cannot be opened."""
        self._path = path
        self._file = path.open("rb")
        self._file.seek(0, 2)
        self._rest = b""

    def new_lines(self) -> Iterator[str]:
        """Whole lines that came since the last call."""
        yield from self._read()
        if self._was_begun_anew():
            yield from self._read()  # what came to the old one in between
            self._file.close()
            self._file = self._path.open("rb")
            self._rest = b""
            yield from self._read()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> Iterator[str]:
        while piece := self._file.read(_PIECE):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            yield from (line.decode("utf-8", errors="replace") for line in lines)

    def _was_begun_anew(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False  # between two files; the next look finds the new one
        return there.st_ino != os.fstat(self._file.fileno()).st_ino
