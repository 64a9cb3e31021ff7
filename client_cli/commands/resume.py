"""`axon resume JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import page as page_option
from client_cli.options import tensorboard as tensorboard_option
from client_cli.options import trackers as trackers_option


@click.command("resume")
@click.argument("job")
@trackers_option
@page_option
@tensorboard_option
@common
def command(
    job: str, trackers: tuple[str, ...], page: str, tensorboard: Path | None, home: Path | None, as_json: bool
) -> int:
    """Go on with JOB, which was left or interrupted or failed, from the last round that was kept."""
    from client_cli.context import Context
    from client_cli.following import follow
    from client_cli.report.beside import Wishes

    context = Context.of(home, as_json)
    with context.swarm(trackers) as swarm:
        return follow(swarm.resume(job), context, Wishes(page, tensorboard))
