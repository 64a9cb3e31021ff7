"""`axon-peer finish`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.command("finish")
@common
def command(home: Path | None, as_json: bool) -> None:
    """End the running rounds, then pause."""
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control.caller import finish
    from peer_daemon.options import next_command, peer_home
    from peer_daemon.owner.status_text import finishing_text

    folder = peer_home(home)
    status = asyncio.run(finish(folder))
    text = finishing_text(status, resume=next_command(folder, "resume"))
    print_answer(text, msgspec.to_builtins(status), as_json=as_json)
