"""The files that a copy left in AXON_OUT: which of them come home, read without following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from axonp2p.jobs.file_names import LONGEST_NAME, why_bad_name
from axonp2p.jobs.messages import PART_BYTES
from axonp2p.kinds.run.messages import MOST_OUTPUT_BYTES, MOST_OUTPUTS


@dataclass
class FoundOutputs:
    """What lies there that fits."""

    paths: list[str] = field(default_factory=list)
    """Below the folder, sorted."""
    left_out: int = 0
    """Files that fit, and may not come."""


def fits(path: str, patterns: Sequence[str]) -> bool:
    """Whether a file of this name is wanted; `*` also stands for slashes."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def find_outputs(folder: Path, patterns: Sequence[str]) -> FoundOutputs:
    """The files in `folder` that fit; what is not a plain file is not looked at."""
    found, size = FoundOutputs(), 0
    for above, folders, names in os.walk(folder):
        # What lies deeper has no name that a file may have.
        folders[:] = sorted(name for name in folders if len(_below(folder, above, name)) < LONGEST_NAME)
        for name in sorted(names):
            path = _below(folder, above, name)
            try:
                status = os.lstat(folder / path)
            except OSError:
                continue  # gone meanwhile
            if not stat.S_ISREG(status.st_mode) or not fits(path, patterns):
                continue
            room = len(found.paths) < MOST_OUTPUTS and size + status.st_size <= MOST_OUTPUT_BYTES
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
