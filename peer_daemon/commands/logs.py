"""`axon-peer logs`."""

from __future__ import annotations

from pathlib import Path

import click

from peer_daemon.options import common

_LOOK_EVERY_S = 0.3


@click.command("logs")
@click.option("-f", "--follow", is_flag=True, help="Follow the log as it grows, until Ctrl-C.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="How many to begin with."
)
@common
def command(follow: bool, lines: int, home: Path | None, as_json: bool) -> None:
    """Show the peer's own log, also when no peer runs now. With --json, one object a line."""
    import time

    from axonp2p.console import print_answer
    from peer_daemon.log_file import Follower, last_lines, log_path
    from peer_daemon.options import peer_home

    path = log_path(peer_home(home))

    def say(line: str) -> None:
        print_answer(line, {"line": line}, as_json=as_json)

    for line in last_lines(path, lines):
        say(line)
    if not follow:
        return
    follower = Follower(path)
    try:
        while True:
            for line in follower.new_lines():
                say(line)
            time.sleep(_LOOK_EVERY_S)
    finally:
        follower.close()
