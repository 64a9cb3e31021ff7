"""What came home of each copy, on the client's disk: `out/<index>/` and a line in results.csv.

A result counts once its line is on the disk, and the line is written when its files are: after a crash at any moment
there is a whole result or none, and an index that has none is done again. Names of files are a stranger's words.
Everything here blocks.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from axonp2p.disk_errors import not_writable
from axonp2p.errors import PeerMisbehaved
from axonp2p.files import put_aside, replacing, sync_folder, sync_tree
from axonp2p.jobs.file_names import why_bad_together
from axonp2p.kinds.run.messages import MOST_OUTPUT_BYTES, OutputFile, OutputPart, OutputsSent
from axonp2p.kinds.run.outputs import fits

_ARRIVING = ".arriving-"


@dataclass(frozen=True)
class CopyResult:
    """A line of results.csv: what one index came to."""

    index: int
    peer: str
    """Its name; empty where no peer is to be named."""
    code: int
    """The exit code; below 0: the number of the signal that ended it."""
    seconds: float
    bytes: int
    """Of its files."""


COLUMNS = [field.name for field in fields(CopyResult)]


class ArrivingOutputs:
    """The files of one copy on their way in, beside the place that they will have. Raises `SettingsError` of the disk.

    `request` is the one that they were asked for with; parts of another one are passed over.
    """

    def __init__(self, out: Path, index: int, request: int, patterns: Sequence[str]) -> None:
        self._place = out / str(index)
        self._folder = out / f"{_ARRIVING}{index}-{request}"
        self._request = request
        self._patterns = patterns
        self._part = self._folder / "part"
        self._hasher = hashlib.sha256()
        self._size = 0
        """Of the file that comes."""
        self._number = 0
        self._paths: list[str] = []
        self.bytes = 0
        """Of the files that came."""
        self.files = 0
        self.left_out = 0
        """Files that the peer did not send though they fit."""
        self.complete = False
        """Whether all are here."""
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._kept.mkdir(parents=True)
        except OSError as error:
            raise not_writable(self._folder, error) from error

    @property
    def _kept(self) -> Path:
        return self._folder / "files"

    def part(self, message: OutputPart, payload: bytes | memoryview) -> None:
        """The next bytes of a file. Raises `PeerMisbehaved` for what does not fit."""
        if message.request != self._request:
            return
        self._expect(message.number)
        if message.offset != self._size or not payload or self.complete:
            raise PeerMisbehaved("the peer sent a part of a file that does not fit")
        if self.bytes + self._size + len(payload) > MOST_OUTPUT_BYTES:
            raise PeerMisbehaved(f"the peer sent more than {MOST_OUTPUT_BYTES} bytes of files")
        try:
            with self._part.open("ab") as file:
                file.write(payload)
        except OSError as error:
            raise not_writable(self._part, error) from error
        self._hasher.update(payload)
        self._size += len(payload)

    def file(self, message: OutputFile) -> None:
        """A file is complete. Raises `PeerMisbehaved` for another hash, or a name that it may not have."""
        if message.request != self._request:
            return
        self._expect(message.number)
        if self.complete or (message.size, message.sha256) != (self._size, self._hasher.digest()):
            raise PeerMisbehaved("the peer sent a file that does not have the hash or size that it says")
        if not fits(message.path, self._patterns):
            raise PeerMisbehaved(f"the peer sent a file that nobody asked for: {message.path!r}")
        if reason := why_bad_together([*self._paths, message.path]):
            raise PeerMisbehaved(f"the peer sent a file that cannot be written: {reason}")
        target = self._kept / message.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._part.open("ab") as file:  # an empty one had no part
                os.fsync(file.fileno())
            self._part.replace(target)
        except OSError as error:
            raise not_writable(target, error) from error
        self._paths.append(message.path)
        self.files += 1
        self.bytes += message.size
        self._begin(message.number + 1)

    def sent(self, message: OutputsSent) -> None:
        """There are no more. Raises `PeerMisbehaved` when some are missing."""
        if message.request != self._request:
            return
        if message.files != self.files:
            raise PeerMisbehaved(f"the peer says that it sent {message.files} files, and {self.files} came")
        self.left_out = message.left_out
        self.complete = True

    def put(self) -> None:
        """Move all of them to their place, where those of a result that never counted may lie."""
        assert self.complete
        try:
            with contextlib.suppress(FileNotFoundError):
                self._part.unlink()
            sync_tree(self._kept)
            if self._place.exists():
                shutil.rmtree(self._place)
            self._kept.replace(self._place)
            sync_folder(self._place.parent)
        except OSError as error:
            raise not_writable(self._place, error) from error
        self.drop()

    def drop(self) -> None:
        """Forget what came. Harmless after `put`."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _expect(self, number: int) -> None:
        """A file that could not be read to its end at the peer has no last word: the next one begins."""
        if number < self._number:
            raise PeerMisbehaved("the peer sent files out of order")
        if number > self._number:
            self._begin(number)

    def _begin(self, number: int) -> None:
        self._part.unlink(missing_ok=True)
        self._number, self._size, self._hasher = number, 0, hashlib.sha256()


class ResultsFile:
    """results.csv: a line for each index that has its result."""

    def __init__(self, path: Path, copies: int) -> None:
        self._path = path
        self._copies = copies

    def read(self) -> dict[int, CopyResult]:
        """The results by index. What a crash cut off, or damage, is left out: those indices are done again."""
        return self._read()[0]

    def add(self, result: CopyResult) -> None:
        """One more line, on the disk when this returns. Raises `SettingsError` of the disk."""
        try:
            if not self._path.exists():
                self._write([])
            with self._path.open("a", newline="") as file:
                csv.writer(file).writerow(astuple(result))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise not_writable(self._path, error) from error

    def forget(self, indices: Collection[int]) -> None:
        """They have no result any more. Raises `SettingsError` of the disk."""
        try:
            self._write([result for index, result in self.read().items() if index not in indices])
        except OSError as error:
            raise not_writable(self._path, error) from error

    def mend(self) -> Path | None:
        """Before a job goes on: only whole lines stay. Where the damaged file lies now, if it was more than cut off."""
        try:
            results, whole, cut_off = self._read()
            if whole:
                return None
            aside = put_aside(self._path) if not cut_off else None
            self._write(list(results.values()))
        except OSError as error:
            raise not_writable(self._path, error) from error
        return aside

    def _read(self) -> tuple[dict[int, CopyResult], bool, bool]:
        """The results; whether there is nothing else in the file; whether only its last line is no whole one."""
        try:
            text = self._path.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return {}, True, True
        lines = text.split("\n")
        end = lines.pop()
        results: dict[int, CopyResult] = {}
        odd = 0
        for number, line in enumerate(lines):
            result = _result_of(line.rstrip("\r"))
            if result is None or not 0 <= result.index < self._copies:
                odd += number > 0 or line.rstrip("\r") != ",".join(COLUMNS)
            else:
                odd += result.index in results
                results.setdefault(result.index, result)
        return results, not odd and not end, not odd

    def _write(self, results: Sequence[CopyResult]) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        writer.writerows(astuple(result) for result in results)
        with replacing(self._path, lasting=True) as file:
            file.write(text.getvalue().encode())


def _result_of(line: str) -> CopyResult | None:
    try:
        [(index, peer, code, seconds, size)] = csv.reader([line], strict=True)
        result = CopyResult(int(index), peer, int(code), float(seconds), int(size))
    except (ValueError, csv.Error):
        return None
    return result if result.seconds >= 0 and 0 <= result.bytes <= MOST_OUTPUT_BYTES else None


def clear_away(out: Path) -> None:
    """Remove what a crash left on its way in."""
    for folder in out.glob(f"{_ARRIVING}*"):
        shutil.rmtree(folder, ignore_errors=True)
