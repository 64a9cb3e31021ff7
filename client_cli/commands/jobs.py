"""`axon jobs`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import trackers as trackers_option


@click.command("jobs")
@click.option("--hosted", is_flag=True, help="Ask the trackers first which jobs of yours they carry on.")
@trackers_option
@common
def command(hosted: bool, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """The jobs that were submitted from this computer, the oldest first, and those that --hosted has found."""
    from axonp2p.client.hosted_mark import is_at_work
    from client_cli.context import Context
    from client_cli.job_text import job_data, jobs_text

    context = Context.of(home, as_json)
    if hosted:
        with context.swarm(trackers) as swarm:
            for reason in swarm.find_hosted():
                context.say(f"not asked: {reason}")
    store = context.jobs()
    seen = [job_data(record, at_work=is_at_work(store.find(record.id))) for record in store.records()]
    if not seen:
        text = f"No job yet.  {context.command('init', 'my-job')}  writes a first one."
    else:
        text = jobs_text(seen, now=time.time())
    context.answer(text, {"jobs": seen})
