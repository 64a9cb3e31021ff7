"""`axon submit DIR`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import page as page_option
from client_cli.options import tensorboard as tensorboard_option
from client_cli.options import trackers as trackers_option
from client_cli.options import wait as wait_option


@click.command("submit")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--peers", type=click.IntRange(1, 64), help="How many peers, instead of what job.toml says.")
@click.option("--detach", is_flag=True, help="A tracker carries the job on: this computer may be switched off.")
@wait_option
@trackers_option
@page_option
@tensorboard_option
@common
def command(
    folder: Path,
    peers: int | None,
    detach: bool,
    wait: float,
    trackers: tuple[str, ...],
    page: str,
    tensorboard: Path | None,
    home: Path | None,
    as_json: bool,
) -> int:
    """Do the job in FOLDER on the swarm (a training, or copies of one command), and follow it to its end.

    Ctrl-C asks whether to leave the job (axon resume goes on with it), to cancel it, or to go on; where nobody can be
    asked it is left. Its page shows it meanwhile (not with --json); its report is written when it ends.

    With --wait a job for which too few peers are free waits for them: it says what it waits for, and holds no peer
    meanwhile. Ctrl-C leaves it, to be resumed.

    It ends with 0 only when all is done: for copies of a command, when each of them ended with exit code 0.

    With --detach this ends once a tracker has the job: axon watch shows it, here or on another computer with the same
    key, and axon fetch brings what came of it.
    """
    if detach and tensorboard:
        raise click.UsageError("--tensorboard goes with axon report for a job that is handed over")
    if detach and wait:
        raise click.UsageError("a job that is handed over waits as long as wait under [need] in job.toml says")
    from client_cli.context import Context
    from client_cli.report.beside import PageWishes
    from client_cli.watching.following import follow
    from client_cli.watching.hosted import handed_over

    context = Context.of(home, as_json)
    with context.swarm(trackers) as swarm:
        if detach:
            return handed_over(swarm.hand_over(folder, peers=peers), context)
        return follow(swarm.submit(folder, peers=peers, wait=wait), context, PageWishes(page, tensorboard))
