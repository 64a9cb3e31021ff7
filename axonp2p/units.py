"""Sizes and times as people write them (pure)."""

from __future__ import annotations

import re

_SIZES = {"": 1, "m": 1, "mb": 1, "mib": 1, "g": 1024, "gb": 1024, "gib": 1024, "t": 1024**2, "tb": 1024**2}
_SPANS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def mebibytes_of(text: str) -> int | None:
    """ "4GB" -> 4096, "512" -> 512; None for what is no size."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _SIZES:
        return None
    return round(float(found[1]) * _SIZES[found[2]])


def seconds_of(text: str) -> float | None:
    """ "1h30m" -> 5400; None for what is no time."""
    plain = text.replace(" ", "").lower()
    parts = re.findall(r"(\d{1,6}(?:\.\d{1,3})?)(min|[smhd])", plain)
    if not parts or "".join(number + unit for number, unit in parts) != plain:
        return None
    return sum(float(number) * _SPANS[unit] for number, unit in parts)
