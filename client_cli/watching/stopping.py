"""`axon stop`, and how the program that works on a job is told to stop; also where no program hears it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from axonp2p.client.discovery.trackers import dial_policy, which_trackers
from axonp2p.client.hosted.hosted_mark import is_at_work, read_mark
from axonp2p.client.no_result import cannot_be_stopped, is_over_for
from axonp2p.client.storage.job_commands import JobCommand, say
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.client.storage.kept_bundle import spec_of
from axonp2p.clock import SystemClock
from axonp2p.errors import AxonError, JobFailed
from axonp2p.identity.key_file import load_or_create_key
from axonp2p.jobs.kinds import KINDS
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.plain_text import plural
from axonp2p.settings import read_settings
from client_cli.context import Context
from client_cli.report.files import write_report
from client_cli.text.job_text import job_data
from client_cli.text.kind_text import text_of
from client_cli.watching.hosted import stop_at_host


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


LOOK_S = 0.2


def stop(folder: JobFolder, wish: JobCommand, context: Context, trackers: Sequence[str] = ()) -> tuple[JobRecord, bool]:
    """Have the program that works on the job stop, and wait until it has; what the job is then, and whether one did.

    Ctrl-C ends only the waiting. Where no program works on the job, its peers are told that they need not wait.
    """
    if read_mark(folder):
        return stop_at_host(folder, wish, context, trackers)
    working = folder.is_held()
    if working:
        say(folder.path, wish)
        while folder.is_held():
            time.sleep(LOOK_S)
    record = folder.read()
    if folder.leases.exists():  # it was killed, whether just now or long ago
        _let_go(folder, record, context, trackers)
    if not is_over(record.state):
        record = change(folder, record, JobState.PAUSED)
    return record, working


def change(folder: JobFolder, record: JobRecord, state: JobState) -> JobRecord:
    """Write down what a job without a program is from now on."""
    with folder.held():
        folder.mend()
        record = msgspec.structs.replace(record, state=state, updated=time.time(), waits_for=[])
        folder.write(record, lasting=True)
    return record


def _let_go(folder: JobFolder, record: JobRecord, context: Context, trackers: Sequence[str]) -> None:
    from axonp2p.client.leasing.release_leases import release_leases

    key = load_or_create_key(context.home / "client.key")
    named = list(trackers) or record.named_trackers
    settings = read_settings(context.home)
    dials = dial_policy(which_trackers(named, settings, context.home), settings.client)
    asyncio.run(release_leases(folder, record, spec_of(record), key, dials))
