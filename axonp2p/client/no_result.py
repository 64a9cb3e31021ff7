"""The fix for a job that has no result, or cannot go on: a next command that leads somewhere. Pure."""

from __future__ import annotations

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import JobFailed, JobOver, NoResultYet
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.lifecycle import JobState, seen_state
from axonp2p.plain_text import plural


def no_result(record: JobRecord, *, at_work: bool) -> JobFailed | NoResultYet:
    """It has not finished. `at_work`: some program works on it."""
    state = seen_state(record.state, at_work=at_work, waits=bool(record.waits_for))
    if at_work:
        return NoResultYet(f"{record.id} has no result yet: it is {state}", fix=_working(record))
    return JobFailed(f"{record.id} has no result: it is {state}", fix=_not_working(record))


def is_over_for(record: JobRecord, what: str) -> JobOver:
    """It is over, so it cannot be `what`: "paused", "cancelled", "resumed"."""
    message = f"{record.id} cannot be {what}: it is {record.state}"
    if record.state is JobState.FINISHED:
        return JobOver(message, fix=f"axon fetch {record.id} -o OUT      (or submit its folder again)")
    return JobOver(message, fix=_not_working(record))


def cannot_be_stopped(record: JobRecord) -> JobFailed:
    """Its kind of work cannot be ended early."""
    message = f"{record.id} cannot be stopped: a job of kind {record.kind} has its result at its end alone"
    return JobFailed(message, fix=f"axon cancel {record.id}      (or axon pause {record.id})")


def begin_anew(record: JobRecord) -> str:
    """The fix where nothing is kept."""
    if record.state is JobState.CANCELLED:
        return f"submit its folder again: axon submit {record.folder}"
    return f"axon resume {record.id}      (begins with the first {KINDS[record.kind].unit})"


def _working(record: JobRecord) -> str:
    watch = f"axon watch {record.id}"
    if record.kept and KINDS[record.kind].write_round:
        return f"{_fetch_last(record)}      ({_kept(record)}; {watch} shows when it is done)"
    return f"{watch}      (shows when it is done)"


def _not_working(record: JobRecord) -> str:
    if not record.kept:
        return begin_anew(record)
    cancelled = record.state is JobState.CANCELLED
    go_on = "" if cancelled else f"; axon resume {record.id} continues it"
    if KINDS[record.kind].write_round:
        return f"{_fetch_last(record)}      ({_kept(record)}{go_on})"
    if cancelled:
        names = " and ".join(KINDS[record.kind].result_files)
        return f"axon status {record.id}      (names its folder, where {names} have what came home)"
    return f"axon stop {record.id}      (ends it with {_kept(record)}{go_on})"


def _fetch_last(record: JobRecord) -> str:
    return f"axon fetch {record.id} --round last -o OUT"


def _kept(record: JobRecord) -> str:
    unit = KINDS[record.kind].unit
    return f"after {unit} {record.kept}" if KINDS[record.kind].write_round else plural(record.kept, unit)
