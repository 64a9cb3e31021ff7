"""Copies of one command in words: how they stand, and what they came to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import AxonError, CopiesFailed
from axonp2p.jobs.kinds import KINDS
from axonp2p.kinds.run.events import IndexFailed, JobResults
from axonp2p.kinds.run.record import RunRecord
from axonp2p.plain_text import plural
from client_cli.run import lines
from client_cli.text.kind_text import Command, KindEnd, KindLines, KindText, KindWords, credits_line, peers_line
from client_cli.text.render import duration_text

_OF_A_TRAINING = ("loss", "metrics", "samples", "first_step_s", "rounds")


def _results(told: Sequence[Event]) -> JobResults | None:
    return next((event for event in reversed(told) if isinstance(event, JobResults)), None)


def _summary(event: JobFinished, told: Sequence[Event]) -> str:
    """As `KindEnd` has it."""
    results = _results(told)
    came_to = lines.results_text(results) if results else plural(event.rounds, "copy")
    found = [
        f"Done in {duration_text(event.seconds)}.   {came_to}",
        f"  results  {event.folder}/results.csv",
        peers_line(event),
        credits_line(event),
    ]
    return "\n".join(found)


def _data(event: JobFinished, told: Sequence[Event]) -> dict[str, Any]:
    """As `KindEnd` has it."""
    facts: dict[str, Any] = msgspec.to_builtins(event)
    results = _results(told)
    kept = {name: fact for name, fact in facts.items() if name not in _OF_A_TRAINING}
    return kept | {"copies": event.rounds, "failed": results.failed if results else []}


def _failure(event: JobFinished, told: Sequence[Event], command: Command) -> AxonError | None:
    """As `KindEnd` has it."""
    results = _results(told)
    if results is None or not results.failed:
        return None
    first = results.failed[0]
    why = next((one.reason for one in reversed(told) if isinstance(one, IndexFailed) and one.index == first), "")
    return CopiesFailed(
        f"{len(results.failed):,} of {plural(results.copies, 'copy')} failed: {lines.indices_text(results.failed)}",
        cause=f"copy {first}: {why}" if why else "",
        fix=command("logs", event.job, "--index", str(first)),
    )


def _at_work(record: JobRecord, peers: int) -> str:
    done = f"{record.done:,} of {plural(record.units, 'copy')} are done"
    return f"{done}{_failed(record)}; {plural(peers, 'peer')} at work"


def _finished(record: JobRecord) -> str:
    done = f"{record.done:,} of {record.units:,} copies" if record.done < record.units else plural(record.units, "copy")
    return f"{done} done{_failed(record)}"


def _failed(record: JobRecord) -> str:
    return f", {record.failed:,} failed" if isinstance(record, RunRecord) and record.failed else ""


def _facts(job: dict[str, Any]) -> dict[str, str]:
    failed = f", {job['failed']:,} failed" if job["failed"] else ""
    return {"copies": f"{job['results']:,} of {job['copies']:,} done{failed}", "command": job["spec"]["run"]["command"]}


def _so_far(job: dict[str, Any]) -> str:
    return f"{job['failed']:,} failed" if job["failed"] else ""


TEXT = KindText(
    lines=KindLines(lines.stays, lines.stays_without_bar, lines.end, lines.bar),
    words=KindWords(
        unit=KINDS["run"].unit,
        after=lambda done, copies: f"after {done:,} of {plural(copies, 'copy')}",
        during=lambda done, copies: f"after {done:,} of {plural(copies, 'copy')}",
        at_work=_at_work,
        finished=_finished,
        pausing="once the copies that run are over",
        nothing_yet="no copy is done yet, so there are no results",
        result="results",
        fetching="copies their files, results.csv and logs into a folder.",
    ),
    end=KindEnd(_summary, _data, _failure),
    facts=_facts,
    so_far=_so_far,
)
"""What a terminal says of copies of one command."""
