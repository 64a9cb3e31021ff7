"""Write a bundle to disk as it arrives. What may be written, and where, `jobs.bundle` decides."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

from axonp2p.errors import LimitReached
from axonp2p.jobs.bundle import BundleReceiver
from axonp2p.jobs.messages import BundleManifest, BundlePart

_MIB = 2**20
KEPT_FREE_BYTES = 256 * _MIB
"""A job never gets the last of the volunteer's disk, whatever their limit says."""

_FOLDER, _FILE = 0o755, 0o644
"""Whatever the umask: a worker of root's is another user. Outside, the folder above lets only its owner in."""


class BundleWriter:
    """The folder `HOME/jobs/<reservation>`; its `bundle` is what the worker sees. Methods run in a thread."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._receiver = BundleReceiver(limit_bytes)
        self._turn = threading.Lock()
        self._removed = False

    @property
    def bundle(self) -> Path:
        """The folder with the bundle's files."""
        return self._folder / "bundle"

    def make(self) -> None:
        """Make the empty folder, for its owner alone."""
        self._folder.mkdir(mode=0o700)
        self.bundle.mkdir()
        self.bundle.chmod(_FOLDER)

    def manifest(self, manifest: BundleManifest) -> bool:
        """Make the files, empty. True when that is all (none has a byte).

        Raises `MalformedMessage`, `MessageTooLarge` over the volunteer's limit, `LimitReached` when the disk is full.
        """
        with self._turn:
            if self._removed:
                return False
            paths = self._receiver.heard_manifest(manifest)
            needed = sum(file.size for file in manifest.files)
            if needed + KEPT_FREE_BYTES > shutil.disk_usage(self._folder).free:
                raise LimitReached(f"this peer's disk has no room for {needed // _MIB} MiB")
            for path in paths:
                whole = self.bundle / path
                try:
                    self._make_file(whole)
                except OSError as error:
                    raise LimitReached(f"this peer cannot write the bundle: {error.strerror}") from error
            return self._receiver.complete

    def part(self, part: BundlePart, payload: memoryview) -> bool:
        """Write the next bytes. True when every file is there and has its hash.

        Raises `MalformedMessage`, or `LimitReached` when the disk is full.
        """
        with self._turn:
            if self._removed:
                return False
            write = self._receiver.heard_part(part, payload)
            try:
                descriptor = os.open(self.bundle / write.path, os.O_WRONLY | os.O_NOFOLLOW)
                with os.fdopen(descriptor, "wb") as file:
                    file.seek(write.offset)
                    file.write(payload)
            except OSError as error:
                raise LimitReached(f"this peer cannot write the bundle: {error.strerror}") from error
            return self._receiver.complete

    def _make_file(self, whole: Path) -> None:
        above = [folder for folder in whole.parents if self.bundle in folder.parents and not folder.exists()]
        for folder in reversed(above):
            folder.mkdir()
            folder.chmod(_FOLDER)
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
        try:
            os.fchmod(descriptor, _FILE)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Remove the folder; what is still on its way to the disk is not written any more."""
        with self._turn:
            self._removed = True
            shutil.rmtree(self._folder, ignore_errors=True)
