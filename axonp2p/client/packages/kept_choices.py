"""The choices of pip a short while ago, beside the wheels, so that the next job that asks for the same starts no pip.

HOME/wheels/<hash of what was asked>.json
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from axonp2p.client.packages.plan import WheelSet
from axonp2p.client.packages.wheel_store import WheelStore
from axonp2p.files import write_whole
from axonp2p.jobs.spec import PackagesSpec
from axonp2p.wire.json_form import decode_json

FRESH_S = 600.0
"""As long as pip believes a page of PyPI that it has read."""
LOCKED_FRESH_S = 30 * 86_400.0
"""Where a lock file names each wheel by its hash, no index can say otherwise."""


class KeptChoice:
    """The choice for `wanted`, packages of a platform without their wheels yet. Its methods block."""

    def __init__(self, store: WheelStore, wanted: WheelSet, spec: PackagesSpec, lock: bytes) -> None:
        """`lock` is what is in the lock file; empty without one."""
        settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("PIP_"))
        asked = msgspec.json.encode([wanted, spec.install, settings, _own_wheels(os.environ.get("PIP_FIND_LINKS", ""))])
        self._store = store
        self._fresh_s = LOCKED_FRESH_S if lock else FRESH_S
        self._file = store.folder / f"{hashlib.sha256(asked + lock).hexdigest()}.json"

    def find(self) -> WheelSet | None:
        """It, if it is fresh and all of its wheels are here."""
        try:
            if not 0 <= time.time() - self._file.stat().st_mtime < self._fresh_s:
                return None
            found = decode_json(self._file.read_bytes(), WheelSet)
        except (OSError, msgspec.DecodeError):
            return None
        return found if all(self._store.has(wheel) for wheel in found.wheels) else None

    def keep(self, found: WheelSet) -> None:
        """For the next job; those that nobody can use any more go. A disk that takes no more costs a pip."""
        with suppress(OSError):
            write_whole(self._file, msgspec.json.encode(found))
            for file in self._store.folder.glob("*.json"):
                _remove_old(file)


def _own_wheels(places: str) -> list[tuple[str, int, int]]:
    """The files in folders of this computer's owner, who may have made one again a moment ago: name, bytes, time."""
    found = []
    for place in places.split():
        with suppress(OSError):
            for entry in os.scandir(place.removeprefix("file://")):
                known = entry.stat()
                found.append((entry.path, known.st_size, known.st_mtime_ns))
    return sorted(found)


def _remove_old(file: Path) -> None:
    if time.time() - file.stat().st_mtime > LOCKED_FRESH_S:
        file.unlink()
