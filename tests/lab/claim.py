"""A run's own name, held for as long as the run lives; what dead runs left behind goes when the next one begins.

The name is a locked file. The kernel unlocks it when its process ends, however that happens, so a name whose file can
be locked belongs to nobody.
"""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.lab import kernel

FOLDER = Path("/run/axon-lab")


class Claim:
    """The name; `give_up` removes all that carries it."""

    def __init__(self, folder: Path = FOLDER) -> None:
        """Takes a new one, after removing what dead runs left."""
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _remove_leftovers(folder)
            self.name = f"axonlab-{secrets.token_hex(3)}"
            self._path = folder / self.name
            self._file = self._path.open("w")
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def give_up(self) -> None:
        """Everything that carries the name goes, and what runs in it."""
        _remove_all_of(self.name)
        self._path.unlink(missing_ok=True)
        self._file.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    # A file that was made and is not locked yet would look like a dead run's.
    with (folder / "door").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _remove_leftovers(folder: Path) -> None:
    for path in folder.glob("axonlab-*"):
        with path.open("w") as file:
            if _lock(file):
                _remove_all_of(path.name)
                path.unlink()


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_all_of(name: str) -> None:
    kernel.remove([found for found in kernel.namespaces() if found.startswith(f"{name}-")])
