"""`axon-peer status`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.command("status")
@common
def command(home: Path | None, as_json: bool) -> None:
    """Show what the peer does now, and why.

    Also shows running jobs, limits, credits, and how others reach this peer.
    """
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control.caller import ask_status
    from peer_daemon.options import peer_home
    from peer_daemon.owner.status_text import local_time, status_text

    status = asyncio.run(ask_status(peer_home(home)))
    print_answer(status_text(status, local_time), msgspec.to_builtins(status), as_json=as_json)
