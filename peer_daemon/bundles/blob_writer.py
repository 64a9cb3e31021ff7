"""The file of one further blob of a lease. The worker does not see it until it is whole."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from axonp2p.blobs.manifest import ALONE, Blob
from axonp2p.blobs.store import PieceStore
from axonp2p.errors import LimitReached, MalformedMessage
from peer_daemon.bundles.lease_room import LeaseRoom


class BlobWriter:
    """The file `arriving/NUMBER` of a lease's folder, then `blobs/HEX NAME`. Methods run in a thread."""

    def __init__(self, folder: Path, room: LeaseRoom, blob: Blob, number: int) -> None:
        """`number` is no other's in that folder. Raises `MalformedMessage` for a blob that is not one file."""
        if [file.path for file in blob.files] != [ALONE]:
            raise MalformedMessage("a further blob that is not one file")
        self._arriving = folder / "arriving" / str(number)
        self._shown = folder / "blobs" / blob.name.hex()
        self._room = room
        self._blob = blob
        self._missing = blob.size
        self._turn = threading.Lock()
        self._removed = False
        self._store = PieceStore(self._arriving.parent, blob, called=self._arriving.name)

    def open(self) -> None:
        """Make the file, empty. Raises `LimitReached` when there is no room for it."""
        try:
            free = shutil.disk_usage(self._arriving.parent).free
            self._room.take(self._blob.size, free)
        except OSError as error:
            raise LimitReached(f"this peer cannot write a blob: {error.strerror}") from error
        try:
            self._store.make()
        except OSError as error:
            self.remove()
            raise LimitReached(f"this peer cannot write a blob: {error.strerror}") from error

    def write(self, number: int, piece: bytes | memoryview) -> None:
        """Write a piece, which was checked. Raises `LimitReached` when the disk is full."""
        with self._turn:
            if self._removed:
                return
            try:
                self._store.write(number, piece)
            except OSError as error:
                raise LimitReached(f"this peer cannot write a blob: {error.strerror}") from error
            self._missing -= len(piece)
            self._room.arrived(len(piece))

    def read(self, number: int) -> bytes:
        """A piece that was written; empty when it cannot be read."""
        with self._turn:
            try:
                return b"" if self._removed else self._store.read(number)
            except OSError:
                return b""

    def show(self) -> None:
        """It is whole: the worker sees it from now on. Raises `LimitReached`."""
        with self._turn:
            if self._removed:
                return
            try:
                self._arriving.rename(self._shown)
            except OSError as error:
                raise LimitReached(f"this peer cannot show a blob: {error.strerror}") from error
            self._store = PieceStore(self._shown.parent, self._blob, called=self._shown.name)

    def remove(self) -> None:
        """Remove the file; a worker that has it open keeps it until it closes it."""
        with self._turn:
            if self._removed:
                return
            self._removed = True
            with suppress(OSError):
                os.unlink(self._store.path(0))
            self._room.give_back(self._blob.size, self._missing)
