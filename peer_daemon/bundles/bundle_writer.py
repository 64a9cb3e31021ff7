"""A lease's folder on disk: its bundle's pieces as they come, and what is left of them when the client is cut off."""

from __future__ import annotations

import itertools
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from axonp2p.blobs.manifest import Blob
from axonp2p.blobs.store import PieceStore
from axonp2p.errors import LimitReached
from axonp2p.jobs.bundle import admit
from axonp2p.wheels.bundled import BundledWheel, wheels_among
from peer_daemon.bundles.blob_writer import BlobWriter
from peer_daemon.bundles.lease_room import LeaseRoom
from peer_daemon.wheels.unpacking import UnpackingFor
from peer_daemon.wheels.wheel_cache import WheelCache

_FOLDER = 0o755


class BundleWriter:
    """The folder `HOME/jobs/<reservation>`; the worker sees its `bundle` and its `blobs`. Methods run in a thread."""

    def __init__(self, folder: Path, limit_bytes: int, wheels: WheelCache, *, executes: bool = False) -> None:
        """`wheels` are those that earlier jobs brought. `executes`: the worker may execute programs of the bundle."""
        self.wheels: list[BundledWheel] = []
        """The packages that the job brings along, once it is open."""
        self._folder = folder
        self._limit = limit_bytes
        self._room = LeaseRoom(limit_bytes)
        self._numbers = itertools.count()
        self._wheels = wheels
        self._executes = executes
        self._turn = threading.Lock()
        self._unpacked = self._removed = False
        self._store: PieceStore | None = None

    @property
    def bundle(self) -> Path:
        """The folder with the bundle's files."""
        return self._folder / "bundle"

    @property
    def blobs(self) -> Path:
        """The folder with what the lease is brought besides, each file under its blob's name, once it is whole."""
        return self._folder / "blobs"

    def make(self) -> None:
        """Make the empty folder, for its owner alone."""
        self._folder.mkdir(mode=0o700)
        for shown in (self.bundle, self.blobs):
            shown.mkdir()
            shown.chmod(_FOLDER)
        (self._folder / "arriving").mkdir(mode=0o700)

    def further(self, blob: Blob) -> BlobWriter:
        """A writer of a further blob into this folder. Raises as `BlobWriter` and its `open` do."""
        with self._turn:
            writer = BlobWriter(self._folder, self._room, blob, next(self._numbers))
            if not self._removed:
                writer.open()
            return writer

    def open(self, blob: Blob, kept: Path | None = None) -> set[int]:
        """Make the files, empty or as they were left in `kept`, which is gone then; which pieces are there already.

        Raises `MalformedMessage`, `MessageTooLarge` over the volunteer's limit, `LimitReached` when the disk is full,
        `Refused` for packages that the volunteer does not take.
        """
        with self._turn:
            if self._removed:
                return set()
            admit(blob, self._limit)
            wheels = wheels_among(blob.files)
            self._wheels.admit(wheels)
            try:
                self._room.take(blob.size, shutil.disk_usage(self._folder).free)
                if kept is not None:
                    # The worker sees this very folder: what lay in the old one moves into it.
                    for entry in kept.iterdir():
                        entry.rename(self.bundle / entry.name)
                    kept.rmdir()
                lent = [wheel for wheel in wheels if self._wheels.lend_packed(wheel, self.bundle)]
                store = PieceStore(self.bundle, blob, executes=self._executes)
                store.make()
                held = store.held() if kept is not None or lent else set()
                held -= self._give_back_changed(lent, blob, held)
                store.make()
                self.wheels, self._store = wheels, store
                self._room.arrived(sum(blob.place(number).length for number in held))
                return held
            except OSError as error:
                raise LimitReached(f"this peer cannot write the bundle: {error.strerror}") from error

    def write(self, number: int, piece: bytes | memoryview) -> None:
        """Write a piece, which was checked. Raises `LimitReached` when the disk is full."""
        with self._turn:
            if self._removed or self._store is None:
                return
            try:
                self._store.write(number, piece)
            except OSError as error:
                raise LimitReached(f"this peer cannot write the bundle: {error.strerror}") from error
            self._room.arrived(len(piece))

    def read(self, number: int) -> bytes:
        """A piece that was written; empty when it cannot be read."""
        with self._turn:
            if self._removed or self._store is None:
                return b""
            try:
                return self._store.read(number)
            except OSError:
                return b""

    async def unpack(self, lease: UnpackingFor) -> None:
        """Put all packages into the bundle that is whole now. Raises as `WheelCache.place`."""
        await self._wheels.place(self.wheels, self.bundle, lease)
        self._unpacked = True

    def _give_back_changed(self, lent: list[BundledWheel], blob: Blob, held: set[int]) -> set[int]:
        """Remove lent files that are not, piece by piece, what the manifest says; which pieces are gone with them.

        Nothing may be written into a lent file: it is the same file that other jobs have.
        """
        gone: set[int] = set()
        for wheel in lent:
            pieces = {n for n in range(blob.count) if blob.files[blob.place(n).file].path == wheel.path}
            if not pieces <= held:
                (self.bundle / wheel.path).unlink()
                gone |= pieces
        return gone

    def leave(self, kept: Path) -> None:
        """Leave the bundle's files in the new folder `kept`; then remove the folder."""
        with self._turn:
            if not self._removed and self._store is not None:
                with suppress(OSError):  # then nothing is kept, and the client sends it again
                    self.bundle.rename(kept)
        self.remove()

    def remove(self) -> None:
        """Remove the folder; what is still on its way to the disk is not written any more."""
        with self._turn:
            if self._unpacked and not self._removed:
                self._wheels.take_back(self.wheels, self.bundle)
            self._removed = True
            shutil.rmtree(self._folder, ignore_errors=True)
