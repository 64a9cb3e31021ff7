"""Calls of a function on the page and in the report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.kinds.map.record import MapRecord
from axonp2p.plain_text import plural
from client_cli.map import lanes, story, tables
from client_cli.map.story import MapStory
from client_cli.report.kind_report import JobShortfall, KindReport
from client_cli.report.lanes import Lane
from client_cli.report.tables import Table
from client_cli.text.kind_text import Command


def _tables(told: MapStory, drawn: Sequence[Lane]) -> list[Table]:
    return [tables.failures(told), tables.work(told, drawn)]


def _facts(record: JobRecord, told: MapStory) -> list[tuple[str, str]]:
    assert isinstance(record, MapRecord)
    return [("calls done", f"{record.done:,}"), ("failed", f"{record.failed:,}"), ("begun twice", f"{told.copied:,}")]


def _panels(told: MapStory) -> dict[str, Any]:
    said = f"{told.results:,} of {plural(told.items, 'call')} have their result"
    said += f"; {told.failed:,} failed" if told.failed else ""
    said += f"; {plural(told.copied, 'chunk')} began at a second peer" if told.copied else ""
    said += f"; {plural(told.crashed, 'process')} crashed" if told.crashed else ""
    return {"calls_said": f"{said}.", "calls_failed": bool(told.failures)}


def _to_go(told: MapStory) -> float:
    """By what the calls of this life took so far."""
    if not told.lives or not told.chunks or told.results >= told.items:
        return 0.0
    life = told.lives[-1]
    since = [chunk for chunk in told.chunks if chunk.ended >= life.began]
    calls = sum(chunk.calls for chunk in since)
    if not calls:
        return 0.0
    return (told.items - told.results) * (since[-1].ended - since[0].began) / calls


def _shortfall(told: MapStory, job: str, command: Command) -> JobShortfall | None:
    if not told.failed:
        return None
    first = told.failures[0] if told.failures else None
    text = f"Call {first.item} raised {first.kind}: {first.message}. " if first else ""
    return JobShortfall(
        f"{plural(told.failed, 'call')} failed",
        f"{text}The error of a call is its result: results.sqlite has it in the place of a value.",
        command("fetch", job, "-o", "OUT"),
        "copies the results.",
    )


REPORT = KindReport(
    story=MapStory,
    take=story.take,
    marks=story.MARKS,
    lanes=lanes.lanes,
    looks={"ran": "calls that have their results, with the first item", "paused": "paused by its owner"},
    tables=_tables,
    peers=tables.peers,
    facts=_facts,
    to_go=_to_go,
    panels=_panels,
    shortfall=_shortfall,
    templates=("map_calls.html",),
)
"""What calls of a function add to the page."""
