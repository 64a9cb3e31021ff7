"""The parts of each kind of job that people see: the names of the parts, which are loaded only where they are needed.

The twin of `jobs.kinds`: general code asks here and names no kind. The names are text, so that the rooms that draw a
report or write a line import no kind's room.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KindStory:
    """One kind's parts, each as `module:name` (`jobs.kinds.load`)."""

    text: str
    """Its text in a terminal (`text.kind_text.KindText`)."""
    report: str
    """Its part of the page and the report (`report.kind_report.KindReport`)."""
    check: str
    """Tries a job of it here for `axon check` (`check_peers.TryHere`)."""


STORIES: dict[str, KindStory] = {
    "train": KindStory(
        text="client_cli.train.text:TEXT",
        report="client_cli.train.report:REPORT",
        check="client_cli.train.check:check",
    ),
    "run": KindStory(
        text="client_cli.run.text:TEXT",
        report="client_cli.run.report:REPORT",
        check="client_cli.run.check:check",
    ),
    "map": KindStory(
        text="client_cli.map.text:TEXT",
        report="client_cli.map.report:REPORT",
        check="client_cli.map.check:check",
    ),
}
"""By the kind's name in `jobs.kinds`."""
