"""The states of a job on this disk: `states/000012-<name>.safetensors` is the one after twelve rounds.

Frozen parameters, which are in no state, are `states/frozen-<name>.safetensors`: one file, to which all of them belong.

A file gets its name only when all its bytes are on the disk, so a crash at any moment leaves whole files. Its name is
checked before anything goes on from it, because disks forget.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from axonp2p.blobs.pieces import PIECE_BYTES, PieceBook, PieceHasher
from axonp2p.disk_errors import not_writable
from axonp2p.errors import MalformedMessage
from axonp2p.files import put_aside, sync_folder
from axonp2p.tensors.checkpoint_file import (
    LENGTH_BYTES,
    Model,
    frozen_header_of,
    header_length,
    header_of,
)

_NAME = re.compile(r"(\d{6,})-([0-9a-f]{64})\.safetensors")
_PART = ".part"


@dataclass(frozen=True)
class Checkpoint:
    """A state's file, as it is called."""

    path: Path
    rounds: int
    """How many rounds are in it."""
    state: bytes
    """Its name, which the bytes must hash to."""

    def fits(self) -> bool:
        """Whether they do. Blocks for as long as it takes to read the file."""
        book = _book_of(self.path)
        return book is not None and book.name == self.state

    def read(self) -> bytes:
        """The state's bytes."""
        return b"".join(_portions(self.path))


@dataclass(frozen=True)
class FrozenFile:
    """The frozen parameters of a job, as their file is called (`training.pieces.InPieces`)."""

    path: Path
    name: bytes
    """Which the bytes must hash to."""

    @cached_property
    def pieces(self) -> PieceBook:
        """The hashes of its pieces; of other bytes where the file is damaged, or none. Blocks while it is read."""
        return _book_of(self.path) or PieceBook(b"")

    def fits(self) -> bool:
        """Whether its bytes have its name. Blocks for as long as it takes to read the file."""
        return self.pieces.name == self.name

    @cached_property
    def file(self) -> memoryview:
        """Its bytes, read from the disk as they are looked at. Raises `OSError`, or `MalformedMessage`."""
        with self.path.open("rb") as file:
            begin = header_length(file.read(LENGTH_BYTES))
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[begin:]


def _book_of(path: Path) -> PieceBook | None:
    hasher = PieceHasher()
    try:
        for portion in _portions(path):
            hasher.update(portion)
    except (OSError, MalformedMessage):
        return None
    return hasher.book()


def _portions(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(header_length(file.read(LENGTH_BYTES)))
        while portion := file.read(PIECE_BYTES):
            yield portion


def _make_room(file: IO[bytes], size: int) -> None:
    if sys.platform == "linux":
        os.posix_fallocate(file.fileno(), 0, size)
    else:  # which alone has it; elsewhere a full disk is noticed later, by the first page that finds no room
        file.truncate(size)


class ArrivingFile:
    """`training.state_keeper.Arriving`: a file that is filled in any order."""

    def __init__(self, path: Path, header: bytes, size: int) -> None:
        self._path = path
        self._part = path.with_name(path.name + _PART)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with self._part.open("w+b") as file:
                # Not truncated to its size: where the disk has no room, that is to be known now.
                _make_room(file, len(header) + size)
                file.write(header)
                file.flush()
                self._map = mmap.mmap(file.fileno(), len(header) + size)
        except OSError as error:
            self.drop()
            raise not_writable(path, error) from error
        self.data = memoryview(self._map)[len(header) :]

    def put(self) -> None:
        """`Arriving`."""
        try:
            with self._part.open("rb+") as file:
                self._map.flush()
                os.fsync(file.fileno())
            self._part.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise not_writable(self._path, error) from error

    def drop(self) -> None:
        """`Arriving`. Harmless after `put`."""
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)


class Checkpoints:
    """All states of one job (`training.state_keeper.Shelf`). `most` of them are kept, the newest, and the best one."""

    def __init__(self, folder: Path, job: str, most: int) -> None:
        self._folder = folder
        self._job = job
        self._most = most
        self._whole = b""
        """The frozen parameters that were found to be right."""

    def room(self, rounds: int, state: bytes, model: Model) -> ArrivingFile:
        """`Shelf`."""
        path = self._folder / f"{rounds:06d}-{state.hex()}.safetensors"
        return ArrivingFile(path, header_of(self._job, rounds, state, model), model.state_bytes)

    def frozen(self, name: bytes) -> FrozenFile | None:
        """The frozen parameters of this name."""
        path = self._folder / f"frozen-{name.hex()}.safetensors"
        return FrozenFile(path, name) if path.exists() else None

    def frozen_room(self, name: bytes, size: int) -> ArrivingFile | None:
        """`Shelf`. Those that are there are looked through first: what a disk has damaged comes once more."""
        path = self._folder / f"frozen-{name.hex()}.safetensors"
        there = self.frozen(name)
        if there and (self._whole == name or there.fits()):
            self._whole = name
            return None
        return ArrivingFile(path, frozen_header_of(self._job, name, size), size)

    def all(self) -> list[Checkpoint]:
        """The newest first."""
        found = []
        for path in self._folder.glob("*.safetensors"):
            if name := _NAME.fullmatch(path.name):
                found.append(Checkpoint(path, int(name[1]), bytes.fromhex(name[2])))
        return sorted(found, key=lambda one: (one.rounds, one.path.name), reverse=True)

    def find(self, rounds: int, state: bytes) -> Checkpoint | None:
        """The one with this name."""
        return next((one for one in self.all() if (one.rounds, one.state) == (rounds, state)), None)

    def forget_before(self, rounds: int, state: bytes, best: int = 0) -> None:
        """This one is good: of those before it only the newest are kept, and the one after `best` rounds.

        One that came since is none of them.
        """
        others = [one for one in self.all() if one.rounds <= rounds and (one.rounds, one.state) != (rounds, state)]
        for one in others[self._most - 1 :]:
            if one.rounds != best:
                one.path.unlink(missing_ok=True)

    def put_aside(self, damaged: Checkpoint) -> Path:
        """Rename it, so that nothing goes on from it; where it is now."""
        return put_aside(damaged.path)

    def clear_away(self) -> None:
        """Remove what a crash left unfinished."""
        for path in self._folder.glob(f"*{_PART}"):
            path.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """The job is done: its weights are here."""
        for path in [*(one.path for one in self.all()), *self._folder.glob("frozen-*.safetensors")]:
            path.unlink(missing_ok=True)
        self.clear_away()
        with contextlib.suppress(OSError):  # something is left in it that is not ours, or was put aside
            self._folder.rmdir()
