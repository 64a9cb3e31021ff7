"""Which names a file of a bundle may have: one rule for the client that sends and the peer that writes. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LONGEST_NAME = 200
"""Characters in a whole path."""
LONGEST_PART_BYTES = 255
"""Bytes between two slashes: what file systems take."""
WHEELS_FOLDER = ".wheels"
"""The folder of a bundle in which the packages lie that a job brings along (`axonp2p.wheels`)."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control and format characters, lone surrogates, line and paragraph separators: they disguise a name."""


def why_bad_name(path: str) -> str:
    """Why `path` may not name a file of a bundle, or an empty text when it may."""
    parts = path.split("/")
    if not path or len(path) > LONGEST_NAME:
        return f"a name has 1 to {LONGEST_NAME} characters"
    if path.startswith("/"):
        return "it must be relative to the job's folder"
    if any(part in ("", ".", "..") for part in parts):
        return "it must not have empty parts, . or .."
    if "\\" in path:
        return "folders are separated by /, not by a backslash"
    if any(unicodedata.category(character) in _INVISIBLE for character in path):
        return "it has an invisible character"
    if unicodedata.normalize("NFC", path) != path:
        return "it is not in Unicode normal form C"
    if any(len(part.encode()) > LONGEST_PART_BYTES for part in parts):
        return f"a part of it has more than {LONGEST_PART_BYTES} bytes"
    return ""


def folders_above(path: str) -> list[str]:
    """The folders in which that file lies, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def why_bad_together(paths: Iterable[str]) -> str:
    """Why these files cannot lie in one folder, or an empty text when they can: bad names, twins, a file as folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if reason := why_bad_name(path):
            return f"{path!r}: {reason}"
        if path in seen:
            return f"{path!r} is there twice"
        seen.add(path)
        folders.update(folders_above(path))
    if clash := sorted(seen & folders):
        return f"{clash[0]!r} is a file and a folder"
    return ""
