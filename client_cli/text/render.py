"""Numbers, tables and sentences as people read them. Pure: values in, text out."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping

from axonp2p.plain_text import scaled

APART = "   "
"""Between two facts in a line."""
_FLOP_UNITS = ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP")


def flops_text(count: float) -> str:
    """740000000 -> "740 MFLOP"."""
    return scaled(count, _FLOP_UNITS)


def duration_text(seconds: float) -> str:
    """75 -> "1 min 15 s"; below ten seconds with a tenth."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def age_text(seconds: float) -> str:
    """252 -> "4 min": how old something is, roughly."""
    whole = max(0, round(seconds))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= 2 * size or (whole >= size and unit == "min"):
            return f"{whole // size} {unit}"
    return f"{whole} s"


def credits_text(amount: float) -> str:
    """Three digits that count, never an exponent: 31.2, 0.00172; a small job earns very little."""
    if amount == 0:
        return "0"
    if abs(amount) < 1e-9:
        return "<0.000000001"
    digits = max(0, 2 - math.floor(math.log10(abs(amount))))
    return f"{amount:,.{digits}f}"


def percent_text(share: float) -> str:
    """0.967 -> "96.7 %"."""
    return f"{share * 100:.1f} %"


def metric_text(name: str, value: float) -> str:
    """Accuracies as percent, everything else with four digits."""
    if name == "accuracy" and 0 <= value <= 1:
        return f"{name} {percent_text(value)}"
    return f"{name} {value:.4g}"


def rate_text(samples_per_second: float) -> str:
    """Samples a second without a pretended precision."""
    return f"{samples_per_second:,.0f}" if samples_per_second >= 10 else f"{samples_per_second:.1f}"


def packed(text: str, width: int, most: int) -> list[str]:
    """`text` in at most so many lines of that width: parts that stand apart by three blanks stay whole where they fit.

    A text that is too long is cut off by the code that shows it: the last line is as long as it has to be.
    """
    lines: list[str] = []
    for part in text.split(APART):
        for piece in textwrap.wrap(part, max(width, 1)) or [""]:
            whole = f"{lines[-1]}{APART}{piece}" if lines and piece == part else ""
            if whole and len(whole) <= width:
                lines[-1] = whole
            else:
                lines.append(piece)
    return [*lines[: most - 1], " ".join(lines[most - 1 :])] if len(lines) > most else lines


def pairs(values: Mapping[str, str], *, indent: str = "") -> str:
    """Names and values below each other, the values aligned."""
    width = max((len(name) for name in values), default=0)
    return "\n".join(f"{indent}{name.ljust(width)}   {value}".rstrip() for name, value in values.items())
