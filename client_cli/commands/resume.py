"""`axon resume JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import trackers as trackers_option


@click.command("resume")
@click.argument("job")
@trackers_option
@common
def command(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> int:
    """Go on with JOB, which was left or interrupted or failed, from the last round that was kept."""
    from client_cli.context import Context
    from client_cli.following import follow

    context = Context.of(home, as_json)
    with context.swarm(trackers) as swarm:
        return follow(swarm.resume(job), context)
