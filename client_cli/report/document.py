"""The whole page as one document: styles, script and pictures inside, so that it opens from a disk as from a server.

The policy in its head lets nothing run or load but what stands in it, by hash; everything that peers said goes through
Jinja's or `svg`'s escaping.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from axonp2p.client.events.events import JobFinished
from axonp2p.plain_text import bytes_text, plural
from axonp2p.transport.http.own_page import LOOK
from client_cli.report import lanes_picture, rtt_picture, signs, tables
from client_cli.report.job_summary import JobSummary, View, summary_of
from client_cli.report.kind_report import KindReport, report_of
from client_cli.report.lanes import Lane, WorkTime
from client_cli.report.tables import Table
from client_cli.text.kind_text import Command, text_of
from client_cli.text.render import credits_text, duration_text

if TYPE_CHECKING:
    from jinja2 import Template

HERE = Path(__file__).parent
SAID_SHOWN = 300
Local = Callable[[float], datetime]
"""A Unix time as the clock on the wall has it."""


@dataclass(frozen=True)
class Made:
    """The document, and the files that its links lead to where they are not inside it."""

    html: str
    csv: dict[str, str]
    """By name, without `.csv`."""


def policy(*, live: bool) -> str:
    """The Content-Security-Policy of the document."""
    return only_these(_style(), _script(), live=live)


def only_these(style: str, script: str, *, live: bool) -> str:
    """The Content-Security-Policy of a document with this one style sheet and this one script inside."""
    connect = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; {connect}"
        "base-uri 'none'; form-action 'none'"
    )


def make(view: View, command: Command, local: Local, *, live: bool, all_jobs: str = "") -> Made:
    """The page (`live`: one that asks its server for news) or the report of a job. `all_jobs`: where all of them are
    listed."""
    kind = report_of(view.record.kind)
    drawn = kind.lanes(view.story, _time(view), _until(view))
    made = _tables(view, kind, drawn)
    csv = {table.name: table.csv() for table in made.values()}
    html = _template().render(_context(view, command, local, made, csv, kind, drawn, live=live), all_jobs=all_jobs)
    return Made(html, csv)


def _tables(view: View, kind: KindReport[Any], drawn: list[Lane]) -> dict[str, Table]:
    story = view.story
    found = [
        *kind.tables(story, drawn),
        tables.round_trips(story),
        kind.peers(story, _credits(view), view.over),
        tables.happened(story),
    ]
    return {table.name: table for table in found}


def _context(
    view: View,
    command: Command,
    local: Local,
    made: dict[str, Table],
    csv: dict[str, str],
    kind: KindReport[Any],
    drawn: list[Lane],
    *,
    live: bool,
) -> dict[str, Any]:
    record, story = view.record, view.story
    stands = summary_of(view, command)
    time = _time(view)
    credits = _credits(view)
    return {
        "live": live,
        "policy": policy(live=live),
        "style": _style(),
        "script": _script(),
        "again": command("watch", view.record.id),
        "record": record,
        "story": story,
        "view": view,
        "stands": stands,
        "sign": signs.state_sign(stands.look),
        "icon": icon_address(stands.look),
        "title": _title(view, stands),
        "facts": _facts(view, kind, stands, credits),
        "units": plural(2, text_of(record.kind).words.unit).partition(" ")[2],
        "panels": kind.templates,
        "beside_map": kind.beside_map,
        "lanes": lanes_picture.draw(drawn, time, kind.looks),
        "work_seconds": time.total,
        "map": rtt_picture.rtt_map(story),
        "map_said": rtt_picture.said(story),
        "credits": credits,
        "most_credits": max(credits.values(), default=0.0),
        "tables": made,
        "href": (lambda name: f"{name}.csv") if live else (lambda name: _data_address(csv[name])),
        "said": story.said[-SAID_SHOWN:][::-1],
        "local": local,
        **kind.panels(story),
    }


def _facts(view: View, kind: KindReport[Any], stands: JobSummary, credits: dict[str, float]) -> list[tuple[str, str]]:
    """The large numbers under the headline."""
    record, story = view.record, view.story
    found = [*kind.facts(record, story), ("on the wire", bytes_text(record.wire_bytes))]
    found.append(("credits", credits_text(sum(credits.values()))))
    if stands.look == "running" and (seconds := kind.to_go(story)) > 0:
        found.append(("to go, about", duration_text(seconds)))
    elif isinstance(story.last, JobFinished):
        found.append(("in all", duration_text(story.last.seconds)))
    return found


def _title(view: View, stands: JobSummary) -> str:
    record = view.record
    share = f" {100 * record.done // max(1, record.units)} %" if not view.over else ""
    return f"{stands.word}{share} - {record.id}"


def _credits(view: View) -> dict[str, float]:
    """By peer: what job.json says, which knows of receipts that came after the last round."""
    told = {name: peer.credits for name, peer in view.story.peers.items()}
    return told | {name: amount for name, amount in view.record.credits.items() if name in told or amount}


def _time(view: View) -> WorkTime:
    return WorkTime(view.story.lives, _until(view))


def _until(view: View) -> float:
    """How far the drawn time goes, beyond the last event: a job that is over stands still."""
    return 0.0 if view.over else view.now


def icon_address(look: str) -> str:
    """The sign of a state for the browser's tab."""
    return f"data:image/svg+xml,{quote(signs.tab_icon(look))}"


@cache
def _style() -> str:
    return LOOK.read_text() + _part("job.css")


def _part(name: str) -> str:
    return (HERE / "static" / name).read_text()


def live_script() -> str:
    """The script that keeps an open page as new as its server's data."""
    return _part("live.js")


@cache
def _script() -> str:
    return _part("job.js") + live_script()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data_address(text: str) -> str:
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


@cache
def _template() -> Template:
    from axonp2p.transport.http.page_templates import page_templates

    filters: dict[str, Callable[..., str]] = {
        "bytes": bytes_text, "credits": credits_text, "duration": duration_text,
    }  # fmt: skip
    return page_templates(HERE / "templates", filters).get_template("job.html")
