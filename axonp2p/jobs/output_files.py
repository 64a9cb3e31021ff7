"""The files that a job's program left in AXON_OUT: which of them come home, read without following a link."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from axonp2p.jobs.file_names import LONGEST_NAME, why_bad_name
from axonp2p.jobs.messages import PART_BYTES
from axonp2p.jobs.output_messages import (
    OutputBounds,
    OutputFile,
    OutputMessage,
    OutputPart,
    OutputsSent,
    file_name_hash,
)

EVERY_FILE = ("*",)
"""The patterns that fit whatever is there."""


@dataclass
class FoundOutputs:
    """The files there that fit."""

    paths: list[str] = field(default_factory=list)
    """Below the folder, sorted."""
    left_out: int = 0
    """Files that fit, and may not come."""


def fits(path: str, patterns: Sequence[str]) -> bool:
    """Whether a file of this name is wanted; `*` also matches slashes."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def find_outputs(folder: Path, patterns: Sequence[str], bounds: OutputBounds) -> FoundOutputs:
    """The files in `folder` that fit; what is not a plain file is not looked at."""
    found, size = FoundOutputs(), 0
    for above, folders, names in os.walk(folder):
        # A file that lies deeper has no name that a file may have.
        folders[:] = sorted(name for name in folders if len(_below(folder, above, name)) < LONGEST_NAME)
        for name in sorted(names):
            path = _below(folder, above, name)
            try:
                status = os.lstat(folder / path)
            except OSError:
                continue  # gone meanwhile
            if not stat.S_ISREG(status.st_mode) or not fits(path, patterns):
                continue
            room = len(found.paths) < bounds.files and size + status.st_size <= bounds.bytes
            if why_bad_name(path) or not room:
                found.left_out += 1
            else:
                found.paths.append(path)
                size += status.st_size
    return found


def _below(folder: Path, above: str, name: str) -> str:
    inner = os.path.relpath(above, folder)
    return name if inner == "." else f"{inner}/{name}"


def parts_of(folder: Path, path: str) -> Iterator[bytes]:
    """The content of one file as long as it was when it was opened. Raises `OSError`."""
    descriptor = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        left = status.st_size if stat.S_ISREG(status.st_mode) else 0
        while left and (part := file.read(min(left, PART_BYTES))):
            left -= len(part)
            yield part


def words_of_files(
    folder: Path,
    request: int,
    patterns: Sequence[str],
    bounds: OutputBounds,
    have: Collection[bytes] = (),
) -> Iterator[tuple[OutputMessage, bytes]]:
    """The messages about all files in `folder` that fit, with its payload, read as it is taken.

    A file with one of these hashes (`file_name_hash`) is at the client already. A file that cannot be read to its end
    has no last word, and counts as left out. Raises nothing.
    """
    found = find_outputs(folder, patterns, bounds)
    sent, spent, left_out = 0, 0, found.left_out
    for number, path in enumerate(found.paths):
        size, hasher = 0, hashlib.sha256()
        try:
            if have and file_name_hash(path, _sha256_of(folder, path)) in have:
                continue
            for part in parts_of(folder, path):
                # It may have grown since it was found.
                if spent + size + len(part) > bounds.bytes:
                    break
                yield OutputPart(request=request, number=number, offset=size), part
                hasher.update(part)
                size += len(part)
            else:
                last = OutputFile(request=request, number=number, path=path, size=size, sha256=hasher.digest())
                yield last, b""
                sent += 1
                spent += size
                continue
        except OSError as error:
            print(f"{path} cannot be read: {error.strerror}", file=sys.stderr)
        spent += size
        left_out += 1
    yield OutputsSent(request=request, files=sent, left_out=left_out), b""


def _sha256_of(folder: Path, path: str) -> bytes:
    hasher = hashlib.sha256()
    for part in parts_of(folder, path):
        hasher.update(part)
    return hasher.digest()
