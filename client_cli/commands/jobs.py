"""`axon jobs`, all of them in a table, and `axon status JOB`, one in full."""

from __future__ import annotations

import time
from pathlib import Path

import click

from client_cli import options


@click.command("jobs", short_help="List the jobs submitted from this computer.")
@click.option("--hosted", is_flag=True, help="Ask the trackers first which jobs of yours they carry on.")
@options.trackers
@options.common
def command(hosted: bool, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> int:
    """The jobs that were submitted from this computer, the oldest first, and those that --hosted has found.

    It ends with exit code 9 when the folder of one cannot be read, which is named.
    """
    from axonp2p.client.hosted.hosted_mark import is_at_work
    from axonp2p.errors import SettingsError
    from client_cli.context import Context
    from client_cli.text.job_text import job_data, jobs_text
    from client_cli.watching.hosted import hosted_data

    context = Context.of(home, as_json)
    if hosted:
        with context.swarm(trackers) as swarm:
            for reason in swarm.find_hosted():
                context.say(f"not asked: {reason}")
    store = context.jobs()
    records, unreadable = store.all()
    seen = []
    for record in records:
        try:
            folder = store.find(record.id)
            facts = job_data(record, at_work=is_at_work(folder)) | hosted_data(folder)
        except SettingsError as error:
            unreadable[record.id] = error
        else:
            seen.append(facts)
    for job, why in unreadable.items():
        context.say(f"{job} cannot be read: {why.in_a_line}.  fix: {why.fix}")
    if not seen and unreadable:
        text = "No job can be read."
    elif not seen:
        text = f"No job yet.  {context.command('init', 'my-job')}  writes a first one."
    else:
        text = jobs_text(seen, now=time.time())
    context.answer(text, {"jobs": seen, "unreadable": {job: why.in_a_line for job, why in unreadable.items()}})
    return SettingsError.exit_code if unreadable else 0


@click.command("status", short_help="How far a job is.")
@click.argument("job", shell_complete=options.job_ids)
@options.trackers
@options.common
def status(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """How far JOB is (the beginning of its id is enough); one that a tracker carries on is asked for there."""
    from axonp2p.client.hosted.hosted_mark import is_at_work
    from client_cli.context import Context
    from client_cli.text.job_text import job_data, status_text
    from client_cli.watching.hosted import hosted_data, looked_at

    context = Context.of(home, as_json)
    folder = looked_at(job, context, trackers)
    seen = job_data(folder.read(), at_work=is_at_work(folder)) | {"kept_in": str(folder.path)} | hosted_data(folder)
    context.answer(status_text(seen, context.command), seen)
