"""The findings of a program's doctor, one check a line: as text for people and as data for programs (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from axonp2p.errors import AxonError
from axonp2p.plain_text import plural


class FindingState(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One line of the doctor's answer."""

    state: FindingState
    name: str
    text: str
    fix: str = ""
    code: str = ""
    """Of docs/errors.md; empty where no error has one."""


_WIDTH = max(len(state) for state in FindingState)


def ok(name: str, text: str) -> Check:
    """Nothing to mend."""
    return Check(FindingState.OK, name, text)


def warn(name: str, text: str, fix: str, code: str = "") -> Check:
    """Not as it could be."""
    return Check(FindingState.WARN, name, text, fix, code)


def failed(name: str, error: AxonError) -> Check:
    """Broken, as that error says."""
    return Check(FindingState.FAIL, name, error.in_a_line, error.fix, error.code)


def report_text(checks: Sequence[Check]) -> str:
    """A line a check, below it what mends it, and the sum at the end."""
    lines = []
    for check in checks:
        code = f"   [{check.code}]" if check.code else ""
        lines.append(f"{check.state:<{_WIDTH}}  {check.name}: {check.text}{code}")
        if check.fix:
            lines.append(f"{'':<{_WIDTH}}  fix: {check.fix}")
    return "\n".join([*lines, "", _sum(checks)])


def report_data(checks: Sequence[Check]) -> dict[str, Any]:
    """The JSON object of `doctor --json`."""
    return {
        "ok": not broken(checks),
        "checks": [
            {"state": str(check.state), "name": check.name, "text": check.text, "fix": check.fix, "code": check.code}
            for check in checks
        ],
    }


def broken(checks: Sequence[Check]) -> int:
    """How many failed."""
    return sum(check.state is FindingState.FAIL for check in checks)


def _sum(checks: Sequence[Check]) -> str:
    failures, warnings = broken(checks), sum(check.state is FindingState.WARN for check in checks)
    if not failures and not warnings:
        return "All is well."
    said = [f"{plural(failures, 'thing')} {'is' if failures == 1 else 'are'} broken"] if failures else []
    if warnings:
        said.append(f"{warnings} could be better" if failures else f"{plural(warnings, 'thing')} could be better")
    return f"{', '.join(said)}.   docs/errors.md explains the codes."
