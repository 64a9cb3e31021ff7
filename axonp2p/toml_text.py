"""Mistakes in a TOML file that a person wrote: on which line, and which name was probably meant (pure)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping


def line_of(text: str, section: str, key: str) -> int | None:
    """The line, counted from 1, that sets `key` in `section`; its section's line when the key is written otherwise."""
    current, fallback = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?\s*\"?([\w.-]+)\"?\s*\]", line):
            current = header[1]
            if current == (section or key):
                fallback = fallback or number
        elif assignment := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*(=|\.\s*[\"']?([\w-]+))", line):
            first, dotted = assignment[1], assignment[3]
            if (current, first) == (section, key) or (current, first, dotted) == ("", section, key):
                return number
            if section and (current, first) == ("", section):
                fallback = fallback or number
    return fallback


def not_toml(text: str, error: Exception) -> tuple[int, str]:
    """Line and reason of what `tomllib` raised."""
    line = re.search(r"at line (\d+)", str(error))
    where = int(line[1]) if line else len(text.splitlines()) or 1
    return where, re.sub(r" \(at .*\)", "", str(error))


def nearest(sections: Mapping[str, Iterable[str]], section: str, key: str) -> str:
    """The key that was probably meant by `key` in `section`, with its section when that is another; or empty."""
    written = key.replace("_", "-").lower()
    if here := difflib.get_close_matches(written, list(sections[section]), n=1, cutoff=0.6):
        return here[0]
    places = {name: place for place in sections if place != section for name in sections[place]}
    close = difflib.get_close_matches(written, places, n=1, cutoff=0.75)
    if not close:
        return ""
    place = places[close[0]]
    return f"{close[0]}, in [{place}]" if place else f"{close[0]}, above every section"


def nearest_section(sections: Iterable[str], name: str) -> str:
    """The section that was probably meant by `[name]`, or empty."""
    close = difflib.get_close_matches(name.lower(), [section for section in sections if section], n=1)
    return f"[{close[0]}]" if close else ""
