"""Calls of a function on the page and in the report. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.kinds.map.record import MapRecord
from axonp2p.plain_text import plural
from client_cli.map import lanes, story, tables
from client_cli.map.results_found import MOST_FOUND, find_results
from client_cli.map.story import MapStory
from client_cli.report.kind_report import JobShortfall, KindReport
from client_cli.report.lanes import Lane
from client_cli.report.tables import Table
from client_cli.text.kind_text import Command


def _look(told: MapStory, folder: Path) -> None:
    told.found = find_results(folder)


def _tables(told: MapStory, drawn: Sequence[Lane]) -> list[Table]:
    return [tables.failures(told), tables.opinions(told), tables.results(told.found), tables.work(told, drawn)]


def _facts(record: JobRecord, told: MapStory) -> list[tuple[str, str]]:
    assert isinstance(record, MapRecord)
    found = [("calls done", f"{record.done:,}"), ("failed", f"{record.failed:,}")]
    if told.rate:
        found.append(("calls a second", f"{told.rate:,.0f}" if told.rate >= 10 else f"{told.rate:.2g}"))
    return found


def _panels(told: MapStory) -> dict[str, Any]:
    return {
        "calls_said": _calls_said(told),
        "calls_failed": told.failed,
        "calls_aside": list(told.aside.items()),
        "opinions_said": _opinions_said(told),
        "results_said": _results_said(told),
        "picture": f"data:image/png;base64,{b64encode(told.found.picture).decode()}" if told.found.picture else "",
    }


def _calls_said(told: MapStory) -> str:
    if not told.items:
        return "No call has a result yet."
    said = f"{told.results:,} of {plural(told.items, 'call')} {'has' if told.items == 1 else 'have'} a result"
    said += f"; {told.failed:,} failed" if told.failed else ""
    said += f"; {plural(told.copied, 'chunk')} that took too long began at a second peer as well" if told.copied else ""
    if told.crashed:
        said += f"; the process of a call ended {'once' if told.crashed == 1 else f'{told.crashed:,} times'}"
    return f"{said}."


def _opinions_said(told: MapStory) -> list[str]:
    """Empty where no result was compared."""
    compared, waits = told.found.compared, len({one.item for one in told.found.waiting})
    said = []
    if compared:
        said.append(f"{plural(compared, 'result')} {_is(compared)} confirmed: at least two peers gave an equal one.")
    if waits:
        said.append(
            f"{plural(waits, 'call')} {'waits' if waits == 1 else 'wait'} for a second opinion: "
            "a result counts once other peers have found the same."
        )
    if told.outvoted:
        outvoted = len(told.outvoted)
        said.append(f"{plural(outvoted, 'peer')} {'was' if outvoted == 1 else 'were'} outvoted, and not paid for that.")
    if told.waited_of and not said:
        said.append("No result is confirmed yet.")
    return said


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _results_said(told: MapStory) -> str:
    found = told.found
    if found.trouble:
        return f"{found.trouble}."
    if not found.results:
        return "No call has a result yet."
    if found.merged:
        return "All results are merged to this one."
    if found.parts:
        return "Peers merge these to one result."
    said = "In the order of their items."
    if len(found.results) > tables.RESULTS_SHOWN:
        said = f"The first {tables.RESULTS_SHOWN}, in the order of their items."
    if len(found.results) < MOST_FOUND:
        return said
    return f"{said} The CSV has the first {MOST_FOUND:,}; results.sqlite has all."


def _to_go(told: MapStory) -> float:
    """By what the calls of this life took so far."""
    return (told.items - told.results) / told.rate if told.rate and told.results < told.items else 0.0


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
    looks={
        "ran": "calls that have their results",
        "failed": "calls, some of which failed",
        "copy": "calls that were stuck at another peer",
        "stuck": "stuck: begun at a second peer as well",
        "paused": "paused by its owner",
    },
    tables=_tables,
    peers=tables.peers,
    facts=_facts,
    to_go=_to_go,
    panels=_panels,
    shortfall=_shortfall,
    templates=("map_calls.html",),
    look=_look,
)
"""The part of the page and the report that calls of a function add."""
