"""`axon watch JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import page as page_option


@click.command("watch")
@click.argument("job")
@click.option("--open", "in_browser", is_flag=True, help="Open the page in the browser.")
@page_option
@common
def command(job: str, in_browser: bool, page: str, home: Path | None, as_json: bool) -> int:
    """Show JOB, which another terminal works on or which is over: its page in the browser, its events here.

    Ctrl-C ends the watching, not the job. With --json each event is a line, and there is no page.
    """
    from client_cli.context import Context
    from client_cli.watching_job import watch

    context = Context.of(home, as_json)
    return watch(context.jobs().find(job), context, page=page, in_browser=in_browser)
