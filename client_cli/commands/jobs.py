"""`axon jobs`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from client_cli.options import common


@click.command("jobs")
@common
def command(home: Path | None, as_json: bool) -> None:
    """The jobs that were submitted from this computer, the oldest first."""
    from client_cli.context import Context
    from client_cli.job_text import job_data, jobs_text

    context = Context.of(home, as_json)
    store = context.jobs()
    seen = [job_data(record, at_work=store.find(record.id).is_held()) for record in store.records()]
    if not seen:
        text = f"No job yet.  {context.command('init', 'my-job')}  writes a first one."
    else:
        text = jobs_text(seen, now=time.time())
    context.answer(text, {"jobs": seen})
