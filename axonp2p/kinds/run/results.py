"""The results of each copy that came home, on the client's disk: `out/<index>/` and a line in results.csv.

A result counts once its line is on the disk, and the line is written when its files are: after a crash at any moment
there is a whole result or none, and an index that has none is done again. Names of files are a stranger's words.
Everything here blocks.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from axonp2p.client.storage.arriving_files import ArrivingFiles
from axonp2p.disk_errors import not_writable
from axonp2p.files import put_aside, replacing, sync_folder, sync_tree
from axonp2p.jobs.output_messages import MOST_OUTPUT_BYTES, OutputBounds

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


class ArrivingOutputs(ArrivingFiles):
    """The files of one copy on their way in, beside the place that they will have. Raises `SettingsError` of the disk.

    `request` is the one that they were asked for with; parts of another one are passed over.
    """

    def __init__(self, out: Path, index: int, request: int, patterns: Sequence[str]) -> None:
        self._place = out / str(index)
        self._folder = out / f"{_ARRIVING}{index}-{request}"
        self._kept = self._folder / "files"
        super().__init__(self._kept, self._folder / "part", request, patterns=patterns, bounds=OutputBounds())
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._kept.mkdir(parents=True)
        except OSError as error:
            raise not_writable(self._folder, error) from error

    def put(self) -> None:
        """Move all of them to their place, where those of a result that never counted may lie."""
        assert self.complete
        try:
            self.drop_part()
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


class ResultsFile:
    """results.csv: a line for each index that has its result."""

    def __init__(self, path: Path, copies: int) -> None:
        self._path = path
        self._copies = copies

    def read(self) -> dict[int, CopyResult]:
        """The results by index. Lines cut off by a crash, or damaged, are left out: those indices are done again."""
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
