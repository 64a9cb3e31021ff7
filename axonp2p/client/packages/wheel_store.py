"""Wheels on this computer's disk, by their SHA-256: what a job needs to go on without the index.

HOME/wheels/<sha256>/<file>.whl
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from axonp2p.client.packages.plan import PlannedWheel

MOST_BYTES = 2 * 2**30
"""Of all wheels; those used least recently go."""


class WheelStore:
    """The wheels of one client. Its methods block, and raise `OSError` where the disk fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, wheel: Path) -> PlannedWheel:
        """Move a wheel here."""
        with wheel.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        planned = PlannedWheel(file=wheel.name, sha256=sha256, size=wheel.stat().st_size)
        place = self.path(planned)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(wheel, place)
        return planned

    def path(self, wheel: PlannedWheel) -> Path:
        """Where it lies."""
        return self.folder / wheel.sha256 / wheel.file

    def has(self, wheel: PlannedWheel) -> bool:
        """Whether it is here, whole as far as its size tells; it counts as used."""
        try:
            if self.path(wheel).stat().st_size != wheel.size:
                return False
            os.utime(self.path(wheel).parent)
        except OSError:
            return False
        return True

    def trim(self, stay: set[str]) -> None:
        """Remove those used least recently, until the rest is within the limit; never those of `stay`."""
        there = [one for one in self.folder.iterdir() if one.is_dir()] if self.folder.is_dir() else []
        folders = sorted(there, key=lambda one: one.stat().st_mtime)
        sizes = {one: sum(file.stat().st_size for file in one.iterdir()) for one in folders}
        over = sum(sizes.values()) - MOST_BYTES
        for one in folders:
            if over <= 0:
                return
            if one.name not in stay:
                shutil.rmtree(one)
                over -= sizes[one]
