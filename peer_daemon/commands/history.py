"""`axon-peer history`."""

from __future__ import annotations

from pathlib import Path

import click

from axonp2p.command_group import Duration
from peer_daemon.options import common


@click.command("history")
@click.option(
    "--since",
    type=Duration(),
    default="24h",
    show_default=True,
    metavar="TIME",
    help="How far back, such as 24h or 7d.",
)
@common
def command(since: float, home: Path | None, as_json: bool) -> None:
    """Show when jobs ran, and when and why the peer waited.

    Events of jobs are listed too, oldest first. 30 days are kept.
    """
    import asyncio
    import time

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control.caller import ask_history
    from peer_daemon.options import peer_home
    from peer_daemon.owner.status_text import history_text, local_time

    told = asyncio.run(ask_history(peer_home(home), max(0.0, time.time() - since)))
    print_answer(history_text(told, local_time), msgspec.to_builtins(told), as_json=as_json)
