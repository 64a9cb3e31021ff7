"""`axon status JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common, job_ids
from client_cli.options import trackers as trackers_option


@click.command("status", short_help="How far a job is.")
@click.argument("job", shell_complete=job_ids)
@trackers_option
@common
def command(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """How far JOB is (the beginning of its id is enough); one that a tracker carries on is asked for there."""
    from axonp2p.client.hosted.hosted_mark import is_at_work
    from client_cli.context import Context
    from client_cli.text.job_text import job_data, status_text
    from client_cli.watching.hosted import hosted_data, looked_at

    context = Context.of(home, as_json)
    folder = looked_at(job, context, trackers)
    seen = job_data(folder.read(), at_work=is_at_work(folder)) | {"kept_in": str(folder.path)} | hosted_data(folder)
    context.answer(status_text(seen, context.command), seen)
