"""The files of a job on their way to a peer: what the client sends (`collect`), and what a peer lets in (`admit`)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from axonp2p.blobs.manifest import ALONE, MOST_FILES, Blob, BlobFile, Manifest
from axonp2p.blobs.messages import MOST_PIECES
from axonp2p.blobs.pieces import PIECE_BYTES, PieceHasher, piece_count
from axonp2p.errors import JobFileWrong, MalformedMessage, MessageTooLarge, SettingsError
from axonp2p.jobs.file_names import WHEELS_FOLDER, why_bad_together
from axonp2p.jobs.spec import JOB_FILE, JobSpec, section_of
from axonp2p.plain_text import bytes_text

BUNDLE_LIMIT = 2**30
"""Bytes in all the files of a job together."""

MOST_TOLD = 5
"""Files that cannot be sent, by name."""
_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class SourceFile:
    """One file to send: its name in the bundle, and where it lies here."""

    path: str
    source: Path
    size: int
    hashes: bytes
    """SHA-256 of every piece, one after the other."""


@dataclass(frozen=True)
class Bundle:
    """All the files of a job, in the order in which they are sent."""

    files: list[SourceFile]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    @cached_property
    def blob(self) -> Blob:
        """The description of them that a peer is told before the pieces come."""
        return Blob(Manifest(files=[BlobFile(path=f.path, size=f.size, blake3=f.hashes) for f in self.files]))

    def piece(self, number: int) -> bytes:
        """A piece, read from the disk. Raises `JobFileWrong` when its file cannot be read, or is another by now."""
        place = self.blob.place(number)
        source = self.files[place.file].source
        try:
            with source.open("rb") as file:
                file.seek(place.offset)
                piece = file.read(place.length)
        except OSError as error:
            raise JobFileWrong(f"{source} cannot be read: {error.strerror}") from error
        if not self.blob.fits(number, piece):
            raise JobFileWrong(f"{source} changed while it was sent", fix="submit again")
        return piece

    def copy_to(self, folder: Path) -> None:
        """Write all its files there. Raises `SettingsError`."""
        try:
            for file in self.files:
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.source, target)
        except OSError as error:
            raise SettingsError(f"cannot write to {folder}: {error.strerror or error}") from error


def collect(
    folder: Path, spec: JobSpec, *, elsewhere: Mapping[str, Path] = MappingProxyType({}), limit: int = BUNDLE_LIMIT
) -> Bundle:
    """Find and hash the files that `spec` names in `folder`; it reads them all, so not on the event loop.

    `elsewhere`: by their names in the bundle, files that are made for it, and do not lie in the folder. Raises
    `JobFileWrong` when one is missing, unreadable, outside the folder, or all are above `limit` bytes.
    """
    named = [
        JOB_FILE,
        *section_of(spec.kind).files(spec),
        *([spec.packages.lock] if spec.packages.lock else []),
        *(path for entry in spec.data for path in _matches(folder, entry)),
    ]
    paths = list(dict.fromkeys(named))
    job_file = _job_file(folder)
    if reason := why_bad_together(paths):
        raise JobFileWrong(f"{job_file}: a file cannot be sent: {reason}", fix="give it another name")
    if any(path.startswith(f"{WHEELS_FOLDER}/") for path in paths):
        raise JobFileWrong(
            f"{job_file}: a file is in {WHEELS_FOLDER}, the folder of packages", fix="put it into another folder"
        )
    if len(paths) > MOST_FILES:
        raise JobFileWrong(
            f"{job_file}: {len(paths)} files; a job may have at most {MOST_FILES}", fix="pack the data into fewer files"
        )
    sources, wrong = dict[str, Path](), list[JobFileWrong]()
    for path in paths:
        try:
            sources[path] = elsewhere.get(path) or _inside(folder, path)
        except JobFileWrong as error:
            wrong.append(error)
    if wrong:
        raise wrong[0] if len(wrong) == 1 else _told_together(job_file, wrong)
    size = sum(source.stat().st_size for source in sources.values())
    if size > limit:
        raise JobFileWrong(
            f"{job_file}: its files have {bytes_text(size)} together; a job may have at most {bytes_text(limit)}",
            fix="send less data: drop columns, compress it, or take a sample",
        )
    return Bundle([hashed_file(path, source) for path, source in sources.items()])


def _told_together(job_file: str, wrong: Sequence[JobFileWrong]) -> JobFileWrong:
    first = [error.message.removeprefix(f"{job_file}: ") for error in wrong[:MOST_TOLD]]
    more = f"; and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
    return JobFileWrong(
        f"{job_file}: {len(wrong)} files cannot be sent", cause="; ".join(first) + more, fix=wrong[0].fix
    )


def _job_file(folder: Path) -> str:
    """Where a person looks for a mistake: a job that was not submitted as a folder has no file of its own."""
    return str(folder / JOB_FILE) if (folder / JOB_FILE).exists() else "this job"


def _matches(folder: Path, entry: str) -> list[str]:
    """The files that an entry of `data` means: one by its name, or all that fit a pattern and are not hidden."""
    if not any(sign in entry for sign in "*?[") or (folder / entry).exists():
        return [entry]
    try:
        found = [path.relative_to(folder) for path in folder.glob(entry) if path.is_file()]
    except (ValueError, NotImplementedError) as error:
        raise JobFileWrong(f"{_job_file(folder)}: data: {entry!r} is not a pattern of file names: {error}") from error
    plain = sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))
    if not plain:
        raise JobFileWrong(f"{_job_file(folder)}: data: no file of {folder} fits {entry!r}")
    return plain


def _inside(folder: Path, path: str) -> Path:
    """Where the named file lies, links followed, when that is still in the folder and is a file."""
    problem, fix = "", f"put a file {path} into {folder}"
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
        problem, fix = "it is a folder, and data names files", f'data = ["{path}/*"]'
    elif not source.exists():
        problem = "there is no such file"
    elif not source.is_file():
        problem = "it is not a plain file"
    if problem:
        raise JobFileWrong(f"{_job_file(folder)}: {path!r}: {problem}", fix=fix)
    return source


def hashed_file(path: str, source: Path) -> SourceFile:
    """The file at `source` as the file `path` of a bundle; it is read. Raises `JobFileWrong`."""
    hasher, size = PieceHasher(), 0
    try:
        with source.open("rb") as stream:
            while chunk := stream.read(_READ_BYTES):
                hasher.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise JobFileWrong(f"{source} cannot be read: {error.strerror}", fix=f"chmod u+r {source}") from error
    return SourceFile(path=path, source=source, size=size, hashes=hasher.book().hashes)


def alone(source: Path) -> Bundle:
    """The file at `source` by itself, as a blob that its bytes name, whatever the file is called; it is read.

    `blob.name.hex()` is what a worker finds it by, in /blobs. Raises `JobFileWrong`, also for one that is too large.
    """
    found = Bundle([hashed_file(ALONE, source)])
    if (pieces := piece_count(found.size)) > MOST_PIECES:
        most = bytes_text(MOST_PIECES * PIECE_BYTES)
        raise JobFileWrong(f"{source} has {pieces} pieces; at most {most} travel as one blob", fix="cut it in two")
    return found


def admit(blob: Blob, limit: int) -> None:
    """Raise `MalformedMessage` for a bundle whose files cannot lie in one folder, `MessageTooLarge` over `limit`."""
    if reason := why_bad_together(file.path for file in blob.files):
        raise MalformedMessage(f"a bundle that cannot be written: {reason}")
    if blob.size > limit:
        raise MessageTooLarge(f"a bundle of {bytes_text(blob.size)}; this peer takes at most {bytes_text(limit)}")
