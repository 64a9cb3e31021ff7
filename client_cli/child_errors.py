"""Why a process that we started ended: its own last error, found again in its log. Pure."""

from __future__ import annotations

import re

from axonp2p.console import printable
from axonp2p.errors import AxonError, PortTaken, error_classes

LAST_LINES = 8
# The fixed shape in which programs end: see axonp2p/console.py.
_ERROR = re.compile(
    r"^error (?P<code>AX-\d{3}): (?P<message>.*)$(?:\ncause: (?P<cause>.*)$)?(?:\nfix: (?P<fix>.*)$)?", re.MULTILINE
)


def last_lines(log: str) -> str:
    """The end of a log, for people: no empty lines, no control characters."""
    lines = [line for line in printable(log).splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:])


def why_it_ended(name: str, log: str, log_path: str) -> AxonError:
    """The error that a process called `name` ended with, as the same class; one of ours when it said none."""
    told = list(_ERROR.finditer(log))
    if told:
        error = told[-1]
        kind = error_classes().get(error["code"], AxonError)
        fix = error["fix"] or f"its log: {log_path}"
        if kind is PortTaken:
            # The tracker advises an option of its own, not of the command that started it.
            fix = "leave --port away, and a free one is taken"
        return kind(f"{name} did not start: {error['message']}", cause=error["cause"] or "", fix=fix)
    said = last_lines(log)
    return AxonError(
        f"{name} ended while it was starting",
        cause=f"the last lines of its log:\n{said}" if said else "it wrote nothing to its log",
        fix=f"its log: {log_path}",
    )
