"""Text that all programs make alike: counts, sizes and tables. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence

_BYTE_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def plural(count: int, noun: str) -> str:
    """(1, "peer") -> "1 peer"; (4, "peer") -> "4 peers"; (2, "copy") -> "2 copies"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{count:,} {noun}s"


def scaled(value: float, units: Sequence[str]) -> str:
    """`value` with the largest of `units` (each 1000 times the one before) that keeps it above 1."""
    index = 0
    # 999.5 would be rounded to "1000" of the smaller unit.
    while abs(value) >= 999.5 and index < len(units) - 1:
        value /= 1000
        index += 1
    whole = index == 0 or abs(value) >= 99.95
    return f"{value:.0f} {units[index]}" if whole else f"{value:.1f} {units[index]}"


def bytes_text(count: float) -> str:
    """3100000 -> "3.1 MB"."""
    return scaled(count, _BYTE_UNITS)


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
