"""Files that a job's program left, on their way to this client's disk. Names and bytes are a stranger's words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from axonp2p.disk_errors import not_writable
from axonp2p.errors import PeerMisbehaved
from axonp2p.jobs.file_names import why_bad_together
from axonp2p.jobs.output_files import fits
from axonp2p.jobs.output_messages import OutputBounds, OutputFile, OutputMessage, OutputPart, OutputsSent


class ArrivingFiles:
    """The files of one request. Each file that is whole is put below `place`. Blocks.

    `request` is the one that they were asked for with; parts of another one are passed over. Raises `PeerMisbehaved`
    for what does not fit, and `SettingsError` of the disk.
    """

    def __init__(
        self,
        place: Path,
        part: Path,
        request: int,
        *,
        patterns: Sequence[str],
        bounds: OutputBounds,
        there: Mapping[str, int] | None = None,
    ) -> None:
        """`part` is where the file lies that comes. `there` are files that lie in `place` already, with their bytes:
        they count against `bounds`, and one that comes again takes the other's place."""
        self.request = request
        self.there = dict(there or {})
        """All files in `place`, with their bytes."""
        self.hashes: dict[str, bytes] = {}
        """The SHA-256 of each file that came, by its path, whether or not there was room for it."""
        self.files = 0
        """That were put in their place."""
        self.bytes = 0
        """Of these."""
        self.left_out = 0
        """Files that the peer did not send though they fit, or that have no room here."""
        self.complete = False
        """Whether all are here."""
        self._into = place
        self._part = part
        self._patterns = patterns
        self._bounds = bounds
        self._came = 0
        """Bytes, with those of files that never had a last word."""
        self._number = 0
        self._size = 0
        """Of the file that comes."""
        self._hasher = hashlib.sha256()

    def take(self, message: OutputMessage, payload: bytes | memoryview = b"") -> None:
        """Take the parts that the peer sends."""
        if message.request != self.request:
            return
        match message:
            case OutputPart():
                self._part_came(message, payload)
            case OutputFile():
                self._file_came(message)
            case OutputsSent():
                self._all_came(message)

    def drop_part(self) -> None:
        """Forget the file that has not come to its end."""
        self._part.unlink(missing_ok=True)

    def _part_came(self, message: OutputPart, payload: bytes | memoryview) -> None:
        """The next bytes of a file."""
        self._expect(message.number)
        if message.offset != self._size or not payload or self.complete:
            raise PeerMisbehaved("the peer sent a part of a file that does not fit")
        if self._came + len(payload) > self._bounds.bytes:
            raise PeerMisbehaved(f"the peer sent more than {self._bounds.bytes} bytes of files")
        try:
            with self._part.open("ab") as file:
                file.write(payload)
        except OSError as error:
            raise not_writable(self._part, error) from error
        self._hasher.update(payload)
        self._size += len(payload)
        self._came += len(payload)

    def _file_came(self, message: OutputFile) -> None:
        """A file is complete: it has the hash that it should have, and a name that a file may have."""
        self._expect(message.number)
        if self.complete or (message.size, message.sha256) != (self._size, self._hasher.digest()):
            raise PeerMisbehaved("the peer sent a file that does not have the hash or size that it says")
        if not fits(message.path, self._patterns):
            raise PeerMisbehaved(f"the peer sent a file that nobody asked for: {message.path!r}")
        if reason := why_bad_together([*self.hashes, message.path]):
            raise PeerMisbehaved(f"the peer sent a file that cannot be written: {reason}")
        self.hashes[message.path] = message.sha256
        if self._has_room(message.path, message.size):
            self._put(message.path)
            self.there[message.path] = message.size
            self.files += 1
            self.bytes += message.size
        else:
            self.left_out += 1
        self._begin(message.number + 1)

    def _all_came(self, message: OutputsSent) -> None:
        """There are no more."""
        if message.files != len(self.hashes):
            raise PeerMisbehaved(f"the peer says that it sent {message.files} files, and {len(self.hashes)} came")
        self.left_out += message.left_out
        self.complete = True

    def _has_room(self, path: str, size: int) -> bool:
        """Beside what an earlier request brought."""
        others = {name: taken for name, taken in self.there.items() if name != path}
        if len(others) >= self._bounds.files or sum(others.values()) + size > self._bounds.bytes:
            return False
        return not why_bad_together([*others, path])

    def _put(self, path: str) -> None:
        target = self._into / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._part.open("ab") as file:  # an empty one had no part
                os.fsync(file.fileno())
            self._part.replace(target)
        except OSError as error:
            raise not_writable(target, error) from error

    def _expect(self, number: int) -> None:
        """A file that could not be read to its end at the peer has no last word: the next one begins."""
        if number < self._number:
            raise PeerMisbehaved("the peer sent files out of order")
        if number > self._number:
            self._begin(number)

    def _begin(self, number: int) -> None:
        self.drop_part()
        self._number, self._size, self._hasher = number, 0, hashlib.sha256()


def files_below(folder: Path) -> dict[str, int]:
    """The files in a folder that such files were put into, with their bytes; none where there is no folder. Blocks."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
