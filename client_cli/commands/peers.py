"""`axon peers`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import trackers as trackers_option


@click.command("peers")
@trackers_option
@common
def command(trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Peers that would take a job now, what each offers, and how far away it is."""
    import msgspec

    from client_cli.context import Context
    from client_cli.peer_text import peers_text

    context = Context.of(home, as_json)
    with context.swarm(trackers) as swarm:
        seen = swarm.peers(measure=True)
    context.answer(peers_text(seen), {"peers": [msgspec.to_builtins(peer) for peer in seen]})
