"""Blobs that the worker keeps for calls, as files in its scratch: those that were used least go. Blocks."""

from __future__ import annotations

import hashlib
import mmap
from collections import Counter, OrderedDict
from collections.abc import Iterable
from pathlib import Path

from axonp2p.errors import MalformedMessage

MOST_BYTES = 96 * 2**20
"""Of blobs that no chunk names; the scratch is memory of the sandbox."""
BROUGHT = Path("/blobs")
"""Where the daemon shows the large ones, which are not counted here."""


class KeptBlobs:
    """Of one worker; for its main thread."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._most = most_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()
        """Of whole ones; those used last are last."""
        self._arriving: dict[str, int] = {}
        """How much of each has come."""
        self._pins: Counter[str] = Counter()
        self._dropped: set[str] = set()
        """Those that went: nobody sends them unless they are asked for."""

    def keep(self, name: str, size: int, offset: int, part: bytes | memoryview) -> bool:
        """Write a part; whether the blob is whole now. Raises `MalformedMessage`."""
        if name in self._sizes:
            return False
        if offset == 0:
            self._arriving[name] = 0
        if self._arriving.get(name) != offset or offset + len(part) > size:
            raise MalformedMessage("parts of a blob out of their order")
        with self._part(name).open("wb" if offset == 0 else "ab") as file:
            file.write(part)
        self._arriving[name] = offset + len(part)
        if self._arriving[name] < size:
            return False
        del self._arriving[name]
        with self._part(name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != name:
                raise MalformedMessage("a blob is not what its name says")
        self._part(name).replace(self.folder / name)
        self._sizes[name] = size
        self._dropped.discard(name)
        self._make_room()
        return True

    def use(self, name: str, file: str) -> None:
        """The daemon shows this one, under another name."""
        if name not in self._sizes:
            link = self.folder / f"{name}.link"
            link.unlink(missing_ok=True)
            link.symlink_to(BROUGHT / file)
            link.replace(self.folder / name)  # at once: a core may be opening the one before

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Those of these that are not here."""
        return [name for name in names if name not in self._sizes and not (self.folder / name).exists()]

    def dropped(self, names: Iterable[str]) -> list[str]:
        """Those of these that were here once."""
        return [name for name in names if name in self._dropped]

    def pin(self, names: Iterable[str]) -> None:
        """A chunk needs these."""
        for name in names:
            self._pins[name] += 1
            if name in self._sizes:
                self._sizes.move_to_end(name)

    def unpin(self, names: Iterable[str]) -> None:
        """It is over."""
        self._pins.subtract(names)
        self._make_room()

    def _make_room(self) -> None:
        for name in list(self._sizes):
            if sum(self._sizes.values()) <= self._most:
                return
            if self._pins[name] <= 0:
                del self._sizes[name]
                self._dropped.add(name)
                (self.folder / name).unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.part"


def open_kept(folder: Path, name: str) -> bytes | memoryview:
    """The bytes of a blob, read-only, without a copy."""
    with (folder / name).open("rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # it is empty
            return b""
