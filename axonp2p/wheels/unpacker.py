"""The program in the sandbox that unpacks one wheel: `python -s -P -m axonp2p.wheels.unpacker FD`.

It reads /job/<file>.whl with pypa's `installer`, holds every file to the hash in RECORD, and says names and bytes on
its channel. It writes no file. Scripts, headers and data of a wheel are left out: a job imports modules.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from installer import install
from installer.destinations import WheelDestination
from installer.exceptions import InstallerError
from installer.records import RecordEntry
from installer.sources import WheelFile
from installer.utils import construct_record_file

from axonp2p.jobs.file_names import why_bad_name
from axonp2p.plain_text import bytes_text
from axonp2p.sandbox.inside import Inside, serve_daemon
from axonp2p.sandbox.messages import Control, Start
from axonp2p.wheels.bundled import MOST_UNPACKED_BYTES, MOST_UNPACKED_FILES
from axonp2p.wheels.messages import (
    LONGEST_REASON,
    PART_BYTES,
    FromUnpacker,
    UnpackedFile,
    UnpackedPart,
    WheelBad,
    WheelUnpacked,
)
from axonp2p.wire.frame import pack_frame

if TYPE_CHECKING:
    from installer.utils import Scheme

FOLDER = Path("/job")
Say = Callable[..., None]
"""A `FromUnpacker`, and its payload where it has one."""
_MODULES = ("purelib", "platlib")
_MOST_NAMES_BYTES = 16 * 2**20
"""Of a zip file's directory: 400 for each file that a wheel may have."""
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OverflowError)
"""The errors of Python's zipfile for files that are damaged, made wrong on purpose, encrypted, or of a rare kind."""


class NoWheel(Exception):
    """Why the file cannot be unpacked, in a sentence without a subject."""


def main() -> None:
    """Unpack it, then wait until the daemon closes the channel."""
    serve_daemon(serve)


def serve(inside: Inside, start: Start) -> None:
    """Say what is in the wheel, or why it is none. Raises `Unreachable` in the end."""

    def say(message: FromUnpacker, payload: bytes = b"") -> None:
        inside.send(Control(), pack_frame(message, payload))

    warnings.simplefilter("ignore")
    (wheel,) = FOLDER.iterdir()
    told = ToldFiles(say)
    try:
        unpack(wheel, told)
    except NoWheel as error:
        say(WheelBad(reason=str(error)[:LONGEST_REASON]))
    else:
        say(WheelUnpacked(files=told.files))
    while True:
        inside.receive()


class ToldFiles(WheelDestination):
    """Where `installer` puts a wheel's files: each is said, none is written."""

    def __init__(self, say: Say) -> None:
        self.files = 0
        self._say = say

    def write_script(self, name: str, module: str, attr: str, section: str) -> RecordEntry:
        """A command that the wheel would install: left out."""
        return RecordEntry(name, None, None)

    def write_file(
        self, scheme: Scheme, path: str | os.PathLike[str], stream: BinaryIO, is_executable: bool
    ) -> RecordEntry:
        """Say the file."""
        if scheme in _MODULES:
            self._tell(str(path), stream, executable=is_executable)
        return RecordEntry(str(path), None, None)

    def finalize_installation(
        self, scheme: Scheme, record_file_path: str, records: Iterable[tuple[Scheme, RecordEntry]]
    ) -> None:
        """Say RECORD, which names the files that were said."""
        kept = [(one, record) for one, record in records if one in _MODULES]
        with construct_record_file(kept) as stream:
            self._tell(record_file_path, stream, executable=False)

    def _tell(self, path: str, stream: BinaryIO, *, executable: bool) -> None:
        self.files += 1
        self._say(UnpackedFile(path=path, executable=executable))
        while part := stream.read(PART_BYTES):
            self._say(UnpackedPart(), part)


def unpack(wheel: Path, told: ToldFiles) -> None:
    """Say all files of the wheel. Raises `NoWheel`, by then some may have been said."""
    try:
        with _BoundedReads(wheel) as file, zipfile.ZipFile(file) as archive:
            _check(archive.infolist())
        with WheelFile.open(wheel) as source:
            source.validate_record()
            install(source, told, {})
    except WheelFile.validation_error as error:
        raise NoWheel(_first_issue(error, wheel)) from error
    except InstallerError as error:
        raise NoWheel(f"is no wheel: {error}") from error
    except _BAD_ZIP as error:
        raise NoWheel(f"is no zip file that can be read: {error}") from error
    except (AssertionError, LookupError, UnicodeError, ValueError) as error:
        raise NoWheel(f"is no wheel: {error!r}") from error


class _BoundedReads(io.FileIO):
    """A zip file whose directory, which `zipfile` reads in one piece and takes apart at once, is not too long."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MOST_NAMES_BYTES:
            raise NoWheel(f"names its files in {bytes_text(size)}; a wheel may in {bytes_text(_MOST_NAMES_BYTES)}")
        return super().read(-1 if size is None else size)


def _check(entries: list[zipfile.ZipInfo]) -> None:
    """Name what no wheel has. The daemon holds what is said to its limits, whatever was found here."""
    if len(entries) > MOST_UNPACKED_FILES:
        raise NoWheel(f"has {len(entries)} files; a wheel may have {MOST_UNPACKED_FILES}")
    size = sum(entry.file_size for entry in entries)
    if size > MOST_UNPACKED_BYTES:
        raise NoWheel(f"unpacks to {bytes_text(size)}; a wheel may have {bytes_text(MOST_UNPACKED_BYTES)}")
    seen: set[str] = set()
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise NoWheel(f"has {entry.filename!r}, which is {'a link' if stat.S_ISLNK(kind) else 'no plain file'}")
        if reason := why_bad_name(entry.filename.removesuffix("/")):
            raise NoWheel(f"has a file {entry.filename!r}: {reason}")
        if entry.filename in seen:
            raise NoWheel(f"has {entry.filename!r} twice")
        seen.add(entry.filename)


def _first_issue(error: Exception, wheel: Path) -> str:
    issues = getattr(error, "issues", None) or [str(error)]
    more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
    return f"is not what its RECORD says: {str(issues[0]).replace(str(wheel), 'it')}{more}"


if __name__ == "__main__":
    main()
