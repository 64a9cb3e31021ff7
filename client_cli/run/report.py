"""Copies of one command on the page and in the report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.kinds.run.copy_ends import code_text
from axonp2p.kinds.run.record import RunRecord
from axonp2p.plain_text import bytes_text, plural
from client_cli.report.kind_report import JobShortfall, KindReport
from client_cli.report.lanes import Lane
from client_cli.report.tables import ROWS_SHOWN, Table
from client_cli.run import lanes, story, tables
from client_cli.run.lines import indices_text
from client_cli.run.story import RunStory
from client_cli.text.kind_text import Command


def _tables(told: RunStory, drawn: Sequence[Lane]) -> list[Table]:
    return [tables.copies(told), tables.work(told, drawn)]


def _facts(record: JobRecord, told: RunStory) -> list[tuple[str, str]]:
    assert isinstance(record, RunRecord)
    files = sum(one.bytes for one in told.indices.values())
    return [("copies done", f"{record.done:,}"), ("failed", f"{record.failed:,}"), ("files", bytes_text(files))]


def _panels(told: RunStory) -> dict[str, Any]:
    failed = [one.index for one in told.indices.values() if one.failed]
    again = sum(one.runs > 1 for one in told.indices.values())
    said = f"{told.done:,} of {plural(told.copies, 'copy')} have their result"
    said += f"; {plural(len(failed), 'copy')} failed: {indices_text(sorted(failed))}" if failed else ""
    said += f"; {plural(again, 'copy')} ran more than once" if again else ""
    left_out = max(0, told.copies - ROWS_SHOWN)
    return {"copies_said": f"{said}.", "copies_left_out": left_out}


def _shortfall(told: RunStory, job: str, command: Command) -> JobShortfall | None:
    failed = sorted(one.index for one in told.indices.values() if one.failed)
    if not failed:
        return None
    first = told.indices[failed[0]]
    return JobShortfall(
        f"{plural(len(failed), 'copy')} failed: {indices_text(failed)}",
        f"Copy {first.index} ended last with {code_text(first.code or 0)} at {first.peer}. "
        "A copy that failed has its line in results.csv, and no files; the others have both.",
        command("logs", job, "--index", str(first.index)),
        "shows what it printed.",
    )


REPORT = KindReport(
    story=RunStory,
    take=story.take,
    marks=story.MARKS,
    lanes=lanes.lanes,
    looks={
        "ran": "a copy that ended well, with its index",
        "failed": "a copy that failed",
        "lost": "given up: its peer was lost, or another one was sooner",
        "now": "a copy that runs",
        "paused": "paused by its owner",
    },
    tables=_tables,
    peers=tables.peers,
    facts=_facts,
    to_go=lambda told: 0.0,
    panels=_panels,
    shortfall=_shortfall,
    templates=("run_copies.html",),
)
"""The part of the page and the report that copies of a command add."""
