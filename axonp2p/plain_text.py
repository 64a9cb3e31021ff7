"""Text that all programs make alike: counts and tables. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    """(1, "peer") -> "1 peer"; (4, "peer") -> "4 peers"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table of plain text, its columns aligned; those whose numbers are in `right` to the right.

    Plain, not drawn with boxes or cut to the terminal's width: it must survive a pipe to grep or awk.
    """
    lines = [list(heads), *[list(row) for row in rows]]
    widths = [max(len(line[index]) for line in lines) for index in range(len(heads))]
    texts = []
    for line in lines:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)
