"""The files that a wheel unpacks to, checked as it comes out of the sandbox: names, number, bytes. Pure."""

from __future__ import annotations

from axonp2p.errors import LimitReached, MalformedMessage, PeerMisbehaved
from axonp2p.jobs.file_names import folders_above, why_bad_name
from axonp2p.plain_text import bytes_text
from axonp2p.wheels.bundled import ENTRY_BYTES, MOST_FOLDERS_DEEP, MOST_UNPACKED_FILES, MOST_UNPACKED_FOLDERS
from axonp2p.wheels.messages import PART_BYTES, UnpackedFile


class Arrival:
    """One wheel, `title` for people, that may have at most `most_bytes` unpacked."""

    def __init__(self, title: str, most_bytes: int) -> None:
        self.files = 0
        self.bytes = 0
        """Of all files, and `ENTRY_BYTES` for each file and folder."""
        self._title = title
        self._most_bytes = most_bytes
        self._names: set[str] = set()
        self._folders: set[str] = set()

    def begin(self, file: UnpackedFile) -> None:
        """A file follows. Raises `PeerMisbehaved` for a name that may not be, `LimitReached` for too many."""
        if reason := why_bad_name(file.path):
            raise PeerMisbehaved(f"{self._title} has a file {file.path!r}: {reason}")
        above = set(folders_above(file.path))
        if len(above) > MOST_FOLDERS_DEEP:
            raise LimitReached(f"{self._title}: {file.path!r} lies more than {MOST_FOLDERS_DEEP} folders deep")
        if file.path in self._names:
            raise PeerMisbehaved(f"{self._title} has the file {file.path!r} twice")
        if file.path in self._folders or above & self._names:
            raise PeerMisbehaved(f"{self._title}: {file.path!r} is a file and a folder")
        self.files += 1
        if self.files > MOST_UNPACKED_FILES:
            raise LimitReached(f"{self._title} has more than {MOST_UNPACKED_FILES} files")
        self._names.add(file.path)
        new = above - self._folders
        self._folders |= new
        if len(self._folders) > MOST_UNPACKED_FOLDERS:
            raise LimitReached(f"{self._title} has more than {MOST_UNPACKED_FOLDERS} folders")
        self._count((1 + len(new)) * ENTRY_BYTES)

    def part(self, size: int) -> None:
        """So many bytes of the last file came. Raises `MalformedMessage` for a part of nothing, `LimitReached`."""
        if not self.files or not 0 < size <= PART_BYTES:
            raise MalformedMessage(f"{self._title}: {size} bytes of file {self.files}")
        self._count(size)

    def end(self, files: int) -> None:
        """That was all. Raises `MalformedMessage` when it was not."""
        if files != self.files:
            raise MalformedMessage(f"{self._title}: {self.files} files of {files}")

    def _count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self._most_bytes:
            raise LimitReached(f"{self._title} unpacks to more than {bytes_text(self._most_bytes)}")
