"""`axon peers`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("peers", short_help="List the peers of the swarm.")
@click.option(
    "--need",
    "needs",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only peers that offer this, as [need] in job.toml has it: cores=4, memory='8 GiB', packages='torch>=2', "
    "datasets=NAME, upload='10 Mbit', uptime='2 h' ...; may be given more than once.",
)
@click.option(
    "--table",
    "wide",
    is_flag=True,
    help="Every capability and the addresses too; more tables below each other where the terminal is narrow.",
)
@click.option("--watch", is_flag=True, help="Look again and again, until Ctrl-C.")
@options.trackers
@options.common
def command(
    needs: tuple[str, ...],
    wide: bool,
    watch: bool,
    trackers: tuple[str, ...],
    home: Path | None,
    as_json: bool,
) -> None:
    """Peers that the shared table shows: state, distance, what each offers, age of its row and who had it.

    Every tracker and the DHT are asked. Under `from` stand those that had the newest row of a peer.
    """
    from axonp2p.jobs.spec import need_in_words
    from axonp2p.peers.capability import read_need
    from client_cli.context import Context
    from client_cli.watching.watch import look_again_and_again, look_once

    context = Context.of(home, as_json)
    need = read_need(need_in_words(needs) | {"also_taken": True})
    with context.swarm(trackers) as swarm:
        look = look_again_and_again if watch else look_once
        look(lambda: swarm.survey(need, measure=True), context, wide=wide)
