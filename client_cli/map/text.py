"""Calls of a function in words: how they stand, and what they came to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import AxonError, CallsFailed
from axonp2p.jobs.kinds import KINDS
from axonp2p.kinds.map.events import CallFailed, CallsDone
from axonp2p.kinds.map.record import MapRecord
from axonp2p.plain_text import plural
from client_cli.map import lines
from client_cli.text.kind_text import Command, KindEnd, KindLines, KindText, KindWords, credits_line, peers_line
from client_cli.text.render import duration_text

_OF_A_TRAINING = ("loss", "metrics", "samples", "first_step_s", "rounds")


def _results(told: Sequence[Event]) -> CallsDone | None:
    return next((event for event in reversed(told) if isinstance(event, CallsDone)), None)


def _summary(event: JobFinished, told: Sequence[Event]) -> str:
    """As `KindEnd` has it."""
    results = _results(told)
    came_to = lines.results_text(results) if results else plural(event.rounds, "call")
    found = [
        f"Done in {duration_text(event.seconds)}.   {came_to}",
        f"  results  {event.folder}/results.sqlite",
        peers_line(event),
        credits_line(event),
    ]
    return "\n".join(found)


def _data(event: JobFinished, told: Sequence[Event]) -> dict[str, Any]:
    """As `KindEnd` has it."""
    facts: dict[str, Any] = msgspec.to_builtins(event)
    results = _results(told)
    kept = {name: fact for name, fact in facts.items() if name not in _OF_A_TRAINING}
    return kept | {"calls": event.rounds, "failed": results.failed if results else 0}


def _failure(event: JobFinished, told: Sequence[Event], command: Command) -> AxonError | None:
    """As `KindEnd` has it."""
    results = _results(told)
    if results is None or not results.failed:
        return None
    first = next((one for one in told if isinstance(one, CallFailed)), None)
    return CallsFailed(
        f"{results.failed:,} of {plural(results.done, 'call')} failed",
        cause=f"call {first.item}: {first.kind}: {first.message}" if first else "",
        fix=f"{command('fetch', event.job, '-o', 'OUT')}      (results.sqlite has the errors)",
    )


def _at_work(record: JobRecord, peers: int) -> str:
    done = f"{record.done:,} of {plural(record.units, 'call')} are done"
    return f"{done}{_failed(record)}; {plural(peers, 'peer')} at work"


def _finished(record: JobRecord) -> str:
    done = f"{record.done:,} of {record.units:,} calls" if record.done < record.units else plural(record.units, "call")
    return f"{done} done{_failed(record)}"


def _failed(record: JobRecord) -> str:
    return f", {record.failed:,} failed" if isinstance(record, MapRecord) and record.failed else ""


def _facts(job: dict[str, Any]) -> dict[str, str]:
    failed = f", {job['failed']:,} failed" if job["failed"] else ""
    function = job["spec"]["map"].get("fn") or "calls of a program"
    return {"calls": f"{job['results']:,} of {job['items']:,} done{failed}", "function": function}


def _so_far(job: dict[str, Any]) -> str:
    return f"{job['failed']:,} failed" if job["failed"] else ""


TEXT = KindText(
    lines=KindLines(lines.stays, lines.stays_without_bar, lines.end, lines.bar, lines.again),
    words=KindWords(
        unit=KINDS["map"].unit,
        after=lambda done, calls: f"after {done:,} of {plural(calls, 'call')}",
        during=lambda done, calls: f"after {done:,} of {plural(calls, 'call')}",
        at_work=_at_work,
        finished=_finished,
        pausing="once the calls that run are over",
        nothing_yet="no call is done yet, so there are no results",
        result="results",
        fetching="copies results.sqlite and logs into a folder.",
    ),
    end=KindEnd(_summary, _data, _failure),
    facts=_facts,
    so_far=_so_far,
)
"""What a terminal says of calls of a function."""
