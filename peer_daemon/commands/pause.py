"""`axon-peer pause`, `axon-peer finish`, which lets the rounds that run end first, and `axon-peer resume`."""

from __future__ import annotations

from pathlib import Path

import click

from axonp2p.command_group import Duration
from peer_daemon.options import common


@click.command("pause")
@click.option(
    "--for", "seconds", type=Duration(), metavar="TIME", help="Such as 2h, 30m or 90s.  [until axon-peer resume]"
)
@common
def command(seconds: float | None, home: Path | None, as_json: bool) -> None:
    """Stop working now; running jobs are handed back.

    No accepted work is lost. axon-peer resume ends the pause early.
    """
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control.caller import ask_status, pause
    from peer_daemon.control.status import Status
    from peer_daemon.options import next_command, peer_home
    from peer_daemon.owner.status_text import local_time, paused_text

    folder = peer_home(home)

    async def order() -> tuple[Status, Status]:
        return await ask_status(folder), await pause(folder, seconds)

    before, after = asyncio.run(order())
    text = paused_text(before, after, local_time, resume=next_command(folder, "resume"))
    print_answer(text, msgspec.to_builtins(after), as_json=as_json)


@click.command("finish")
@common
def finish(home: Path | None, as_json: bool) -> None:
    """End the running rounds, then pause."""
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control import caller
    from peer_daemon.options import next_command, peer_home
    from peer_daemon.owner.status_text import finishing_text

    folder = peer_home(home)
    status = asyncio.run(caller.finish(folder))
    text = finishing_text(status, resume=next_command(folder, "resume"))
    print_answer(text, msgspec.to_builtins(status), as_json=as_json)


@click.command("resume")
@common
def resume(home: Path | None, as_json: bool) -> None:
    """Work again, after a pause or a finish."""
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control import caller
    from peer_daemon.options import peer_home
    from peer_daemon.owner.status_text import state_sentence

    status = asyncio.run(caller.resume(peer_home(home)))
    print_answer(state_sentence(status), msgspec.to_builtins(status), as_json=as_json)
