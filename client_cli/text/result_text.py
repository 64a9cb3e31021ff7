"""Jobs of many results, of which some may fail, in words: copies of a command, calls of a function. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from axonp2p.client.events import events
from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.jobs.kinds import KINDS
from axonp2p.plain_text import plural
from client_cli.text.kind_text import Failure, KindEnd, KindWords, credits_line, peers_line
from client_cli.text.render import duration_text

E = TypeVar("E", bound=Event)
_OF_A_TRAINING = ("loss", "metrics", "samples", "first_step_s", "rounds")


def left_line(event: events.PeerLost | events.PeerHandedBack) -> str:
    """The line of a peer that is gone, or soon will be."""
    if isinstance(event, events.PeerHandedBack):
        return f"{event.peer} is wanted back by its owner: {event.reason}"
    others = f"The {plural(event.left, 'peer')} left continue." if event.left != 1 else "The peer left continues."
    return f"{event.peer} left: {event.reason}. {others if event.left else 'No peer is left.'}"


def last_line(event: Event, kind: str) -> str:
    """The last line, as `KindLines.end` has it."""
    unit = KINDS[kind].unit
    match event:
        case JobFinished():
            return f"finished: {plural(event.rounds, unit)} done"
        case events.JobPaused():
            because = f": {event.reason}" if event.reason else ""
            return f"paused after {plural(event.round, unit)}{because}"
    return ""


def last_told(told: Sequence[Event], kind: type[E]) -> E | None:
    """The last event of that type."""
    return next((event for event in reversed(told) if isinstance(event, kind)), None)


def end_of_results(
    kind: str, results: type[E], came_to: Callable[[E], str], failed: Callable[[E | None], Any], failure: Failure
) -> KindEnd:
    """The end of a job: `results` is the event that tells of all of them, `came_to` and `failed` are said of it."""
    unit, file = KINDS[kind].unit, KINDS[kind].result_files[0]

    def summary(event: JobFinished, told: Sequence[Event]) -> str:
        found = last_told(told, results)
        done = f"Done in {duration_text(event.seconds)}.   {came_to(found) if found else plural(event.rounds, unit)}"
        return "\n".join([done, f"  results  {event.folder}/{file}", peers_line(event), credits_line(event)])

    def data(event: JobFinished, told: Sequence[Event]) -> dict[str, Any]:
        facts: dict[str, Any] = msgspec.to_builtins(event)
        kept = {name: fact for name, fact in facts.items() if name not in _OF_A_TRAINING}
        return kept | {_units(unit): event.rounds, "failed": failed(last_told(told, results))}

    return KindEnd(summary, data, failure)


def words_of_results(kind: str, fetching: str) -> KindWords:
    """How such a job stands. `fetching` is what `axon fetch` does."""
    unit = KINDS[kind].unit

    def after(done: int, units: int) -> str:
        return f"after {done:,} of {plural(units, unit)}"

    def at_work(record: JobRecord, peers: int) -> str:
        done = f"{record.done:,} of {plural(record.units, unit)} are done"
        return f"{done}{_failed(record)}; {plural(peers, 'peer')} at work"

    def finished(record: JobRecord) -> str:
        done = f"{record.done:,} of " if record.done < record.units else ""
        return f"{done}{plural(record.units, unit)} done{_failed(record)}"

    return KindWords(
        unit=unit,
        after=after,
        during=after,
        at_work=at_work,
        finished=finished,
        pausing=f"once the {_units(unit)} that run are over",
        nothing_yet=f"no {unit} is done yet, so there are no results",
        result="results",
        fetching=fetching,
    )


def failed_text(job: dict[str, Any]) -> str:
    """Of a job's facts (`job_text.job_data`): how many results are failures; empty for none."""
    return f"{job['failed']:,} failed" if job["failed"] else ""


def done_text(job: dict[str, Any], units: int) -> str:
    """Of the same: how many results there are."""
    return ", ".join(part for part in (f"{job['results']:,} of {units:,} done", failed_text(job)) if part)


def _failed(record: JobRecord) -> str:
    failed: int = msgspec.structs.asdict(record)["failed"]
    return f", {failed:,} failed" if failed else ""


def _units(unit: str) -> str:
    return plural(2, unit).partition(" ")[2]
