"""`axon-peer resume`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common


@click.command("resume")
@common
def command(home: Path | None, as_json: bool) -> None:
    """Work again, after a pause or a finish."""
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control.caller import resume
    from peer_daemon.options import peer_home
    from peer_daemon.owner.status_text import state_sentence

    status = asyncio.run(resume(peer_home(home)))
    print_answer(state_sentence(status), msgspec.to_builtins(status), as_json=as_json)
