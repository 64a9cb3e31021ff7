"""The files of one folder as one run of bytes: a line of JSON with their names and sizes, then what is in them.

    [["a.txt",3],["deep/b.bin",5]]\\n abc 01234          (without the blanks)

Nothing is packed on the disk: any part of it is read from the files themselves. Only plain files have a place in
it, so a program that unpacks a stranger's bytes meets no link, no device and no owner. Everything here blocks.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from axonp2p.errors import MalformedMessage
from axonp2p.files import NO_FOLLOW, sync_tree
from axonp2p.jobs.file_names import LONGEST_NAME, why_bad_together
from axonp2p.wire.json_form import decode_json

HEAD_LIMIT = 2**19
"""Bytes of the line: enough for as many files as a result may have."""
_READ_AT_ONCE = 2**20


class PackedFile(msgspec.Struct, frozen=True, array_like=True):
    """One of them."""

    path: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    """Below the folder."""
    size: Annotated[int, msgspec.Meta(ge=0, le=2**50)]


class PackedHead(NamedTuple):
    """The text of the line."""

    files: list[PackedFile]
    begins: int
    """Where their bytes do: how long the line is."""
    ends: int
    """How long it is with them."""


def read_packed(folder: Path, offset: int, most: int) -> bytes:
    """At most so many bytes of it from there on, none at its end. Raises `OSError`, also where there is no folder."""
    found = _files_in(folder)
    head = msgspec.json.encode(found) + b"\n"
    content, begins = head[offset : offset + most], len(head)
    for file in found:
        skipped = max(0, offset - begins)
        if skipped < file.size and len(content) < most:
            with os.fdopen(os.open(folder / file.path, os.O_RDONLY | NO_FOLLOW), "rb") as opened:
                opened.seek(skipped)
                content += opened.read(min(file.size - skipped, most - len(content)))
        begins += file.size
    return content


def read_head(packed: Path, size: int, *, or_less: bool = False) -> PackedHead | None:
    """The files of a packed folder with so many bytes in them (`or_less`: at most); None: the line is not here yet.

    Raises `MalformedMessage` for what names other files than may lie in a folder, or other sizes.
    """
    with packed.open("rb") as file:
        head, end, _ = file.read(HEAD_LIMIT).partition(b"\n")
    if not end:
        if len(head) == HEAD_LIMIT:
            raise MalformedMessage("the files of a result are not named within their bounds")
        return None
    try:
        found = decode_json(head, list[PackedFile])
    except msgspec.DecodeError as error:
        raise MalformedMessage(f"the files of a result are not named as they should be: {error}") from error
    if reason := why_bad_together(file.path for file in found):
        raise MalformedMessage(f"a result has a file that cannot be written: {reason}")
    told = sum(file.size for file in found)
    if told > size or (told < size and not or_less):
        raise MalformedMessage(f"a result of {size} bytes has files of {told} bytes")
    return PackedHead(found, len(head) + 1, len(head) + 1 + told)


def unpack(packed: Path, into: Path, size: int, *, or_less: bool = False) -> None:
    """Write the files into a new folder; all is on the disk when it returns. Raises as `read_head`, and `OSError`."""
    head = read_head(packed, size, or_less=or_less)
    if head is None or packed.stat().st_size != head.ends:
        raise MalformedMessage(f"a result of {size} bytes came with another number of bytes")
    into.mkdir(parents=True)
    with packed.open("rb") as source:
        source.seek(head.begins)
        for file in head.files:
            target = into / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as written:
                left = file.size
                while left and (part := source.read(min(left, _READ_AT_ONCE))):
                    written.write(part)
                    left -= len(part)
                written.flush()
                os.fsync(written.fileno())
    sync_tree(into)


def _files_in(folder: Path) -> list[PackedFile]:
    """In the order of their names. Raises `OSError` when there is no such folder."""
    os.listdir(folder)
    found = []
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found.append(PackedFile(path.relative_to(folder).as_posix(), status.st_size))
    return sorted(found, key=lambda file: file.path)
