"""The doctor's answer as text and as data (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from client_cli.doctor.checks import Check, State
from client_cli.render import plural

_WIDTH = max(len(state) for state in State)


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
    """The JSON object of `axon doctor --json`."""
    return {
        "ok": not broken(checks),
        "checks": [
            {"state": str(check.state), "name": check.name, "text": check.text, "fix": check.fix, "code": check.code}
            for check in checks
        ],
    }


def broken(checks: Sequence[Check]) -> int:
    """How many failed."""
    return sum(check.state is State.FAIL for check in checks)


def _sum(checks: Sequence[Check]) -> str:
    failures, warnings = broken(checks), sum(check.state is State.WARN for check in checks)
    if not failures and not warnings:
        return "All is well."
    said = [f"{plural(failures, 'thing')} {'is' if failures == 1 else 'are'} broken"] if failures else []
    if warnings:
        said.append(f"{warnings} could be better" if failures else f"{plural(warnings, 'thing')} could be better")
    return f"{', '.join(said)}.   docs/errors.md explains the codes."
