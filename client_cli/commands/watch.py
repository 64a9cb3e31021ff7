"""`axon watch JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("watch", short_help="Follow a job: its events here, its page in the browser.")
@click.argument("job", shell_complete=options.job_ids)
@click.option("--open", "in_browser", is_flag=True, help="Open the page in the browser.")
@options.trackers
@options.page
@options.common
def command(job: str, in_browser: bool, trackers: tuple[str, ...], page: str, home: Path | None, as_json: bool) -> int:
    """Show JOB, which another terminal works on or which is over: its page in the browser, its events here.

    A job that a tracker carries on (axon submit --detach) is found from any computer with the same key. Ctrl-C ends
    the watching, not the job. With --json each event is a line, and there is no page.
    """
    from client_cli.context import Context
    from client_cli.watching.hosted import following_host
    from client_cli.watching.watching_job import watch

    context = Context.of(home, as_json)
    with following_host(job, context, trackers) as (folder, check):
        return watch(folder, context, page=page, in_browser=in_browser, check=check)
