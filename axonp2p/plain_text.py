"""Text that all programs write and read alike: counts, amounts with their units, and tables. Pure.

GB are powers of 1000 and GiB powers of 1024, wherever either is written. Memory and disk of machines are told in GiB,
as their systems count them; files, and what travels, in GB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

_BYTE_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_MEBIBYTE = 2**20
_SIZES = {"mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZES |= {"": 2**20, "m": 2**20, "mib": 2**20, "g": 2**30, "gib": 2**30, "t": 2**40, "tib": 2**40}
"""In bytes; a number alone is one of MiB, and a letter alone means what it means to docker, systemd and free."""
_RATES = {"": 1.0, "kbit": 1e-3, "kbps": 1e-3, "mbit": 1.0, "mbps": 1.0, "gbit": 1e3, "gbps": 1e3}
"""In Mbit/s; "mbit/s" is read as "mbit"."""
_SPANS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}

AmountUnit = Literal["MiB", "Mbit/s", "ms", "s", "min", "d"]
"""In which a setting, or a key of job.toml, is kept; people write its unit, or a number of this one."""


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


def mebibytes_text(amount: int) -> str:
    """Memory or disk of a machine, given in MiB: 512 -> "512 MiB", 24076 -> "23.5 GiB".

    Rounded down, so that what is shown can be had.
    """
    if amount < 1024:
        return f"{amount} MiB"
    value, unit = (amount / 1024, "GiB") if amount < 1000 * 1024 else (amount / 1024**2, "TiB")
    digits = 100 if value < 10 else 10 if value < 100 else 1
    return f"{math.floor(value * digits) / digits:g} {unit}"


def mebibytes_of(text: str) -> int | None:
    """ "4GiB" -> 4096, "4 GB" -> 3815, "512" -> 512; None for what is no size."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _SIZES:
        return None
    return rounded(float(found[1]) * _SIZES[found[2]] / _MEBIBYTE)


def mbits_of(text: str) -> float | None:
    """ "20 Mbit/s" -> 20, "1 Gbit" -> 1000, "2.5" -> 2.5; None for what is no rate."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]*)(?:(?<=bit)/s)?", text.strip().lower())
    return float(found[1]) * _RATES[found[2]] if found is not None and found[2] in _RATES else None


def seconds_of(text: str) -> float | None:
    """ "1h30m" -> 5400, "250 ms" -> 0.25; None for what is no time."""
    plain = text.replace(" ", "").lower()
    parts = re.findall(r"(\d{1,6}(?:\.\d{1,3})?)(min|ms|[smhd])", plain)
    if not parts or "".join(number + unit for number, unit in parts) != plain:
        return None
    return sum(float(number) * _SPANS[unit] for number, unit in parts)


def amount_of(text: str, unit: AmountUnit) -> float | None:
    """An amount as people write it, in `unit`; a number alone is one of `unit`. None for what is no such amount."""
    if unit == "MiB":
        return mebibytes_of(text)
    if unit == "Mbit/s":
        return mbits_of(text)
    if re.fullmatch(r"\s*\d{1,9}(?:\.\d{1,6})?\s*", text):
        return float(text)
    seconds = seconds_of(text)
    return None if seconds is None else round(seconds / _SPANS[unit], 9)


def example_of(unit: AmountUnit) -> str:
    """How such an amount is written."""
    return {"MiB": "4 GiB", "Mbit/s": "20 Mbit/s", "ms": "250 ms", "s": "5 min", "min": "3 min", "d": "14 d"}[unit]


def rounded(value: float) -> int:
    """To a whole number; what is there never becomes nothing."""
    return max(1, round(value)) if value > 0 else 0


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
