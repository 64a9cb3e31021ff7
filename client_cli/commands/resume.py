"""`axon resume JOB`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli import options

if TYPE_CHECKING:
    from axonp2p.loggers.values import LoggerChoice


@click.command("resume", short_help="Continue a paused, interrupted or failed job.")
@click.argument("job", shell_complete=options.job_ids)
@click.option("--here", is_flag=True, help="Take a job that a tracker carries on back to this computer.")
@options.wait
@options.trackers
@options.page
@options.loggers
@options.json_events
@options.common
def command(
    job: str,
    here: bool,
    wait: float,
    trackers: tuple[str, ...],
    page: str,
    loggers: tuple[LoggerChoice, ...],
    json_events: bool,
    home: Path | None,
    as_json: bool,
) -> int:
    """Continue JOB, which was paused or interrupted or failed, from the last round, or all copies, that were kept.

    A job that a tracker carries on goes on there, and axon watch shows it; or here, with --here, on the computer that
    submitted it. --wait is as for axon submit.
    """
    from client_cli.context import Context
    from client_cli.report.beside import PageWishes
    from client_cli.watching.following import follow
    from client_cli.watching.hosted import is_hosted, resume_at_host

    context = Context.of(home, as_json or json_events)
    hosted = is_hosted(job, context, trackers)
    if hosted and not here:
        if wait:
            raise click.UsageError("a job that a tracker carries on waits as long as wait under [need] says")
        return resume_at_host(job, context, trackers)
    with context.swarm(trackers) as swarm:
        going_on = swarm.take_back(job) if hosted else swarm.resume(job, wait=wait)
        return follow(going_on, context, PageWishes(page, loggers), json_events=json_events)
