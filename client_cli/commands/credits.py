"""`axon credits`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import trackers as trackers_option


@click.command("credits")
@click.argument("job", default="")
@trackers_option
@common
def command(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """What a tracker's ledger says of you and the peers of your jobs; with JOB, of that job alone.

    A credit is a cobblestone: 200 of them are a day of work at 1 GFLOPS, counted, not claimed.
    """
    import msgspec

    from client_cli.context import Context
    from client_cli.credits_table import credits_table

    context = Context.of(home, as_json)
    with context.swarm(trackers) as swarm:
        found = swarm.credits(job)
    context.answer(credits_table(found), msgspec.to_builtins(found))
