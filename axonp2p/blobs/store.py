"""The files of a blob on disk: pieces are written where they belong, and what was kept is hashed before it is believed.

A door: methods block, so they run in a thread, one at a time.
"""

from __future__ import annotations

import os
from pathlib import Path

from axonp2p.blobs.manifest import Blob

_FOLDER, _FILE, _PROGRAM = 0o755, 0o644, 0o755
"""Modes that no umask changes: a worker of root's is another user. Outside, the folder above lets only its owner in."""


class PieceStore:
    """The files of `blob` in `folder`, whose names were checked. An `OSError` is the disk's fault."""

    def __init__(self, folder: Path, blob: Blob, *, executes: bool = False, called: str = "") -> None:
        """`executes`: each of the files may be a program. `called`: another name on this disk for a file alone."""
        self._folder = folder
        self._blob = blob
        self._called = called
        self._mode = _PROGRAM if executes else _FILE

    def make(self) -> None:
        """Make the files, empty; those that were kept stay as they are."""
        for file in range(len(self._blob.files)):
            whole = self.path(file)
            above = [folder for folder in whole.parents if self._folder in folder.parents and not folder.exists()]
            for folder in reversed(above):
                folder.mkdir()
                folder.chmod(_FOLDER)
            descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)
            try:
                os.fchmod(descriptor, self._mode)
            finally:
                os.close(descriptor)

    def held(self) -> set[int]:
        """The pieces that are there: each is read and hashed."""
        return {number for number in range(self._blob.count) if self._blob.fits(number, self.read(number))}

    def write(self, number: int, piece: bytes | memoryview) -> None:
        """Put a piece, which was checked, where it belongs."""
        place = self._blob.place(number)
        with os.fdopen(self._open(place.file, os.O_WRONLY), "wb") as file:
            file.seek(place.offset)
            file.write(piece)

    def read(self, number: int) -> bytes:
        """The bytes that lie there, fewer where the file is shorter."""
        place = self._blob.place(number)
        with os.fdopen(self._open(place.file, os.O_RDONLY), "rb") as file:
            file.seek(place.offset)
            return file.read(place.length)

    def path(self, file: int) -> Path:
        """Where the file of that number is."""
        return self._folder / (self._called or self._blob.files[file].path)

    def _open(self, file: int, flags: int) -> int:
        return os.open(self.path(file), flags | os.O_NOFOLLOW)
