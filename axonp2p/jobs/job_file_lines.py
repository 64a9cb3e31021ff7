"""Where in a job.toml something stands. Pure."""

from __future__ import annotations

import re


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
