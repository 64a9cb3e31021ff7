"""The files that a wheel unpacks to, checked as it comes out of the sandbox: names, number, bytes. Pure."""

from __future__ import annotations

from axonp2p.errors import LimitReached, MalformedMessage, PeerMisbehaved
from axonp2p.jobs.file_names import why_bad_name
from axonp2p.plain_text import bytes_text
from axonp2p.wheels.bundled import MOST_UNPACKED_FILES
from axonp2p.wheels.messages import PART_BYTES, UnpackedFile


class Arrival:
    """One wheel, `title` for people, that may have at most `most_bytes` unpacked."""

    def __init__(self, title: str, most_bytes: int) -> None:
        self.files = 0
        self.bytes = 0
        self._title = title
        self._most_bytes = most_bytes
        self._names: set[str] = set()
        self._folders: set[str] = set()

    def begin(self, file: UnpackedFile) -> None:
        """A file follows. Raises `PeerMisbehaved` for a name that may not be, `LimitReached` for too many."""
        if reason := why_bad_name(file.path):
            raise PeerMisbehaved(f"{self._title} has a file {file.path!r}: {reason}")
        parts = file.path.split("/")
        above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        if file.path in self._names:
            raise PeerMisbehaved(f"{self._title} has the file {file.path!r} twice")
        if file.path in self._folders or above & self._names:
            raise PeerMisbehaved(f"{self._title}: {file.path!r} is a file and a folder")
        self.files += 1
        if self.files > MOST_UNPACKED_FILES:
            raise LimitReached(f"{self._title} has more than {MOST_UNPACKED_FILES} files")
        self._names.add(file.path)
        self._folders |= above

    def part(self, size: int) -> None:
        """So many bytes of the last file came. Raises `MalformedMessage` for a part of nothing, `LimitReached`."""
        if not self.files or not 0 < size <= PART_BYTES:
            raise MalformedMessage(f"{self._title}: {size} bytes of file {self.files}")
        self.bytes += size
        if self.bytes > self._most_bytes:
            raise LimitReached(f"{self._title} unpacks to more than {bytes_text(self._most_bytes)}")

    def end(self, files: int) -> None:
        """That was all. Raises `MalformedMessage` when it was not."""
        if files != self.files:
            raise MalformedMessage(f"{self._title}: {self.files} files of {files}")
