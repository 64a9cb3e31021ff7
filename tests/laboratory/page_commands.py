"""The commands that a page of documentation has its reader type, in the order in which it has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Typed:
    """A line of a shell block."""

    line: str


@dataclass(frozen=True)
class Saved:
    """A block that the reader saves as a file: one with a title."""

    name: str
    text: str


def steps(page: str) -> list[Typed | Saved]:
    """What the reader of a page does: the lines of its blocks marked `sh`, without remarks, and files to save."""
    found: list[Typed | Saved] = []
    for language, title, text in _BLOCK.findall(page):
        if title:
            found.append(Saved(title, text))
        elif language == "sh":
            lines = (re.sub(r"\s{2,}#.*", "", line).strip() for line in text.splitlines())
            found += [Typed(line) for line in lines if line]
    return found
