"""The outcome of a check of the log, for people and for programs."""

from __future__ import annotations

from axonp2p.console import print_answer
from axonp2p.errors import LogDamaged
from axonp2p.plain_text import plural
from tracker.log.maintenance import LogChecked


def print_checked(checked: LogChecked, *, as_json: bool, said: str = "") -> int:
    """Print it and return the exit code: 0 when all is well."""
    data = {
        "entries": checked.entries,
        "root": checked.root,
        "log": checked.log,
        "asked": checked.asked,
        "compared": checked.compared,
        "problems": [{"entry": one.entry, "text": one.text} for one in checked.problems],
        "more": checked.more,
    }
    print_answer("\n".join(checked_lines(checked, said)), data, as_json=as_json)
    return LogDamaged.exit_code if checked.problems else 0


def checked_lines(checked: LogChecked, said: str = "") -> list[str]:
    """A line for what is there, one for each problem, one for what was asked of others."""
    lines = [said] if said else []
    lines += [problem.text for problem in checked.problems]
    if checked.more:
        lines.append(f"and {plural(checked.more, 'more problem')}")
    count = f"{checked.entries:,} {'entry' if checked.entries == 1 else 'entries'}"
    if checked.problems:
        return [*lines, f"log {checked.log[:8]} has {count} and is NOT as it was signed"]
    lines.append(f"log {checked.log[:8]} has {count}, all as they were signed; root {checked.root[:16]}")
    if checked.compared:
        lines.append(f"the same log is known to {', '.join(checked.compared)}")
    if silent := [called for called in checked.asked or [] if called not in checked.compared]:
        lines.append(f"no answer from {', '.join(silent)}: not compared with what they saw")
    if checked.asked == []:
        lines.append("compared with nobody: no other tracker is known; name one with --tracker ADDRESS")
    return lines
