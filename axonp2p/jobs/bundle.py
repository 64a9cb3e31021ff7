"""The files of a job on their way to a peer: what the client sends, and what a peer lets in.

`collect` reads a job's folder at the client. `BundleReceiver` decides at the peer what to do with each message; it
touches no disk, so the daemon does the writing, at the path and offset that it is told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from axonp2p.errors import JobFileWrong, MalformedMessage, MessageTooLarge
from axonp2p.jobs.file_names import why_bad_together
from axonp2p.jobs.messages import MOST_FILES, PART_BYTES, BundleFile, BundleManifest, BundlePart
from axonp2p.jobs.spec import JOB_FILE, JobSpec

BUNDLE_LIMIT = 2**30
"""Bytes in all the files of a job together."""

_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class SourceFile:
    """One file to send: its name in the bundle, and where it lies here."""

    path: str
    source: Path
    size: int
    sha256: bytes


@dataclass(frozen=True)
class Bundle:
    """All the files of a job, in the order in which they are sent."""

    files: list[SourceFile]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    def manifest(self) -> BundleManifest:
        """What a peer is told before the parts come."""
        return BundleManifest(
            files=[BundleFile(path=file.path, size=file.size, sha256=file.sha256) for file in self.files]
        )

    def parts(self) -> Iterator[tuple[BundlePart, SourceFile, int]]:
        """Every part to send, the file it is from and its length in bytes. Empty files have none."""
        for number, file in enumerate(self.files):
            for offset in range(0, file.size, PART_BYTES):
                yield BundlePart(file=number, offset=offset), file, min(PART_BYTES, file.size - offset)


def collect(folder: Path, spec: JobSpec, *, limit: int = BUNDLE_LIMIT) -> Bundle:
    """Find and hash the files that `spec` names in `folder`; it reads them all, so not on the event loop.

    Raises `JobFileWrong` when one is missing, unreadable, outside the folder, or all are above `limit` bytes.
    """
    named = [JOB_FILE, spec.task, *(path for entry in spec.data for path in _matches(folder, entry))]
    paths = list(dict.fromkeys(named))
    job_file = folder / JOB_FILE
    if reason := why_bad_together(paths):
        raise JobFileWrong(f"{job_file}: a file cannot be sent: {reason}", fix="give it another name")
    if len(paths) > MOST_FILES:
        raise JobFileWrong(
            f"{job_file}: {len(paths)} files; a job may have at most {MOST_FILES}", fix="pack the data into fewer files"
        )
    sources = {path: _inside(folder, path) for path in paths}
    size = sum(source.stat().st_size for source in sources.values())
    if size > limit:
        raise JobFileWrong(
            f"{job_file}: its files have {_mib(size)} together; a job may have at most {_mib(limit)}",
            fix="send less data: drop columns, compress it, or take a sample",
        )
    return Bundle([_hashed(path, source) for path, source in sources.items()])


def _matches(folder: Path, entry: str) -> list[str]:
    """The files that an entry of `data` means: one by its name, or all that fit a pattern and are not hidden."""
    if not any(sign in entry for sign in "*?[") or (folder / entry).exists():
        return [entry]
    try:
        found = [path.relative_to(folder) for path in folder.glob(entry) if path.is_file()]
    except (ValueError, NotImplementedError) as error:
        raise JobFileWrong(f"{folder / JOB_FILE}: data: {entry!r} is not a pattern of file names: {error}") from error
    plain = sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))
    if not plain:
        raise JobFileWrong(f"{folder / JOB_FILE}: data: no file of {folder} fits {entry!r}")
    return plain


def _inside(folder: Path, path: str) -> Path:
    """Where the named file lies, links followed, when that is still in the folder and is a file."""
    problem = ""
    try:
        source = (folder / path).resolve()
        source.stat()
    except (OSError, RuntimeError):  # RuntimeError: links that lead in a circle
        source = folder / path
        problem = "there is no such file, or it cannot be reached"
    if problem:
        pass
    elif not source.is_relative_to(folder.resolve()):
        problem = "it leads out of the job's folder and is not sent to strangers"
    elif source.is_dir():
        problem = f'it is a folder; name its files, or write "{path}/*"'
    elif not source.exists():
        problem = "there is no such file"
    elif not source.is_file():
        problem = "it is not a plain file"
    if problem:
        raise JobFileWrong(f"{folder / JOB_FILE}: {path!r}: {problem}", fix=f"put a file {path} into {folder}")
    return source


def _hashed(path: str, source: Path) -> SourceFile:
    hasher, size = hashlib.sha256(), 0
    try:
        with source.open("rb") as stream:
            while chunk := stream.read(_READ_BYTES):
                hasher.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise JobFileWrong(f"{source} cannot be read: {error.strerror}", fix=f"chmod u+r {source}") from error
    return SourceFile(path=path, source=source, size=size, sha256=hasher.digest())


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


@dataclass(frozen=True)
class Write:
    """Put the payload just heard at `offset` of the file `path` (checked: it stays inside the bundle's folder)."""

    path: str
    offset: int


class BundleReceiver:
    """The peer's side: a manifest, then parts in order, until all is there. Any other order is misbehaviour."""

    def __init__(self, limit: int = BUNDLE_LIMIT) -> None:
        self._limit = limit
        self._files: list[BundleFile] | None = None
        self._current = 0
        self._written = 0
        self._hasher = hashlib.sha256()

    @property
    def complete(self) -> bool:
        """Whether every file is there and has its hash."""
        return self._files is not None and self._current == len(self._files)

    def heard_manifest(self, manifest: BundleManifest) -> list[str]:
        """The paths of all files, to be made empty now. Raises `MalformedMessage` or `MessageTooLarge`."""
        if self._files is not None:
            raise MalformedMessage("a second bundle manifest")
        if reason := why_bad_together(file.path for file in manifest.files):
            raise MalformedMessage(f"a bundle that cannot be written: {reason}")
        size = sum(file.size for file in manifest.files)
        if size > self._limit:
            raise MessageTooLarge(f"a bundle of {_mib(size)}; this peer takes at most {_mib(self._limit)}")
        self._files = list(manifest.files)
        self._pass_finished()
        return [file.path for file in self._files]

    def heard_part(self, part: BundlePart, payload: bytes | memoryview) -> Write:
        """Where to write the payload. Raises `MalformedMessage` when it is not what comes next."""
        if self._files is None or self.complete:
            raise MalformedMessage("a part of a file where none is awaited")
        file = self._files[self._current]
        if (part.file, part.offset) != (self._current, self._written):
            raise MalformedMessage(
                f"part {part.file} at {part.offset} where {self._current} at {self._written} comes next"
            )
        if not 0 < len(payload) <= file.size - self._written:
            raise MalformedMessage(f"a part of {len(payload)} bytes for the last {file.size - self._written}")
        self._hasher.update(payload)
        self._written += len(payload)
        self._pass_finished()
        return Write(file.path, part.offset)

    def _pass_finished(self) -> None:
        """Go on to the next file that still lacks bytes, checking the hash of each one passed."""
        assert self._files is not None
        while self._current < len(self._files) and self._written == self._files[self._current].size:
            file = self._files[self._current]
            if self._hasher.digest() != file.sha256:
                raise MalformedMessage(f"the bytes of {file.path!r} do not have the hash that was announced")
            self._current += 1
            self._written = 0
            self._hasher = hashlib.sha256()
