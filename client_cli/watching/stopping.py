"""`axon stop`: a job ends with what it came to, whether a program works on it or none does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from axonp2p.client.hosted.hosted_mark import is_at_work, read_mark
from axonp2p.client.no_result import cannot_be_stopped, is_over_for
from axonp2p.client.storage.job_commands import JobCommand
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.clock import SystemClock
from axonp2p.errors import AxonError, JobFailed
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.lifecycle import JobState
from axonp2p.plain_text import plural
from client_cli.context import Context
from client_cli.report.files import write_report
from client_cli.text.job_text import job_data
from client_cli.text.kind_text import text_of
from client_cli.watching.other_program import stop


def finish_job(folder: JobFolder, context: Context, trackers: Sequence[str]) -> None:
    """End it, and say what it came to. Raises `JobFailed` where nothing is kept, and `JobOver`."""
    record = folder.read()
    words = text_of(record.kind).words
    if record.state is JobState.CANCELLED:
        raise is_over_for(record, "stopped")
    if not KINDS[record.kind].finish:
        raise cannot_be_stopped(record)
    at_work = record.state is not JobState.FINISHED and is_at_work(folder)
    if at_work and record.state is not JobState.RUNNING and not record.kept:
        raise _nothing(record, context)
    if at_work:
        context.say(f"{record.id} stops {words.pausing} ...")
    if record.state is not JobState.FINISHED:
        record, _ = stop(folder, JobCommand.STOP, context, trackers)
    if record.state in (JobState.PAUSED, JobState.FAILED):
        if not record.kept:
            raise _nothing(record, context)
        if not read_mark(folder):
            record = _finish_here(folder, context)
    if record.state is not JobState.FINISHED:
        raise JobFailed(f"{record.id} was not stopped: it is {record.state}", fix=context.command("status", record.id))
    fetch = context.command("fetch", record.id, "-o", "OUT")
    text = f"Stopped {record.id} after {plural(record.done, words.unit)}.  {words.result.capitalize()}: {fetch}"
    context.answer(text, job_data(record, at_work=False))


def _finish_here(folder: JobFolder, context: Context) -> JobRecord:
    from axonp2p.client.run.finish_kept import finish_kept

    key = load_or_create_key(context.home / "client.key")
    asyncio.run(finish_kept(folder, key, SystemClock()))
    try:
        context.say(f"report   {write_report(folder, context.command)}")
    except AxonError as error:
        context.say(f"warning: no report: {error.in_a_line}")
    return folder.read()


def _nothing(record: JobRecord, context: Context) -> JobFailed:
    fix = f"{context.command('cancel', record.id)}      (or wait, and stop it then)"
    return JobFailed(f"{record.id} cannot be stopped: {text_of(record.kind).words.nothing_yet}", fix=fix)
