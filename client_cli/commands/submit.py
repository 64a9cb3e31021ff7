"""`axon submit DIR`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli import options

if TYPE_CHECKING:
    from axonp2p.jobs.overrides import Override
    from axonp2p.loggers.values import LoggerChoice


@click.command("submit", short_help="Run the job in FOLDER on the swarm and follow it.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--peers", type=click.IntRange(1, 64), help="How many peers, instead of what job.toml says.")
@options.overrides
@click.option("--detach", is_flag=True, help="A tracker carries the job on: this computer may be switched off.")
@options.wait
@options.trackers
@options.page
@options.loggers
@options.json_events
@options.common
def command(
    folder: Path,
    peers: int | None,
    overrides: Sequence[Override],
    detach: bool,
    wait: float,
    trackers: tuple[str, ...],
    page: str,
    loggers: tuple[LoggerChoice, ...],
    json_events: bool,
    home: Path | None,
    as_json: bool,
) -> int:
    """Do the job in FOLDER on the swarm (a training, or copies of one command), and follow it to its end.

    Ctrl-C asks whether to leave the job (axon resume goes on with it), to stop it (it ends after the round or the
    copies that run, with what it came to), to cancel it, or to go on; where nobody can be asked it is left. Its page
    shows it meanwhile (not with --json); its report is written when it ends.

    With --wait a job for which too few peers are free waits for them: it says what it waits for, and holds no peer
    meanwhile. Ctrl-C leaves it, to be resumed.

    It ends with 0 only when all is done: for copies of a command, when each of them ended with exit code 0.

    With --detach this ends once a tracker has the job: axon watch shows it, here or on another computer with the same
    key, and axon fetch brings what came of it.
    """
    if detach and loggers:
        raise click.UsageError("--log and --tensorboard go with axon report for a job that is handed over")
    if detach and json_events:
        raise click.UsageError("axon watch JOB --json prints the events of a job that is handed over")
    if detach and wait:
        raise click.UsageError("a job that is handed over waits as long as wait under [need] in job.toml says")
    from axonp2p.jobs.overrides import peers_option
    from client_cli.context import Context
    from client_cli.watching.hosted import handed_over

    context, given = Context.of(home, as_json or json_events), [*overrides, *peers_option(peers)]
    with context.swarm(trackers) as swarm:
        if detach:
            return handed_over(swarm.hand_over(folder, overrides=given), context)
        job = swarm.submit(folder, overrides=given, wait=wait)
        # The code that shows it is loaded while the first questions are on their way.
        from client_cli.report.beside import PageWishes
        from client_cli.watching.following import follow

        return follow(job, context, PageWishes(page, loggers), json_events=json_events)
