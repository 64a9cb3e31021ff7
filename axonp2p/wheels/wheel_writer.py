"""The files of one wheel, written as they come out of it: every file and folder is made here, by its name."""

from __future__ import annotations

import os
import shutil
from itertools import takewhile
from pathlib import Path

from axonp2p.errors import LimitReached, PeerMisbehaved
from axonp2p.wheels.arrival import Arrival
from axonp2p.wheels.messages import FromUnpacker, UnpackedFile, UnpackedPart, WheelBad, WheelUnpacked

KEPT_FREE_BYTES = 256 * 2**20
"""A wheel never gets the last of a disk."""
_FOLDER, _FILE, _PROGRAM = 0o755, 0o644, 0o755
"""Modes that no umask changes: a worker of root's is another user."""


class WheelWriter:
    """Writes below the empty folder `into`. Its methods block."""

    def __init__(self, title: str, into: Path, most_bytes: int) -> None:
        """`title` is the wheel for people; it may have at most `most_bytes` unpacked."""
        self._title = title
        self._into = into
        self._arrival = Arrival(title, most_bytes)
        self._file: int | None = None
        self._made: set[Path] = {into}

    @property
    def size(self) -> int:
        """Bytes, as `Arrival` counts them."""
        return self._arrival.bytes

    def hear(self, message: FromUnpacker, payload: bytes | memoryview) -> bool:
        """Take what the sandbox says; True when that was all.

        Raises `PeerMisbehaved` for a wheel that is none, `LimitReached` for a large one or a full disk.
        """
        match message:
            case UnpackedFile():
                self._arrival.begin(message)
                self._begin(message)
            case UnpackedPart():
                self._arrival.part(len(payload))
                self._write(payload)
            case WheelUnpacked(files=files):
                self._arrival.end(files)
                self.close()
                return True
            case WheelBad(reason=reason):
                raise PeerMisbehaved(f"{self._title} {reason}")
        return False

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self, file: UnpackedFile) -> None:
        self.close()
        path = self._into / file.path
        try:
            for folder in reversed(list(takewhile(lambda above: above not in self._made, path.parents))):
                folder.mkdir()
                folder.chmod(_FOLDER)
                self._made.add(folder)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
            os.fchmod(self._file, _PROGRAM if file.executable else _FILE)
        except OSError as error:
            raise self._not_written(error) from error

    def _write(self, payload: bytes | memoryview) -> None:
        assert self._file is not None
        if shutil.disk_usage(self._into).free < KEPT_FREE_BYTES:
            raise LimitReached(f"the disk has no room for {self._title}")
        try:
            while payload:
                payload = payload[os.write(self._file, payload) :]
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> LimitReached:
        return LimitReached(f"{self._title} cannot be written: {error.strerror}")
