"""`axon swarm up | status | down`: a swarm on this computer, to try things out and to develop against."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli import options

if TYPE_CHECKING:
    from client_cli.swarm_file import SwarmRecord


@click.group("swarm", short_help="Start or stop a swarm on this computer.", no_args_is_help=True)
def command() -> None:
    """A swarm of real processes on this computer, reached by nobody else."""


@command.command("up")
@click.option("-n", "--peers", type=click.IntRange(1, 64), default=4, show_default=True, help="How many peers.")
@click.option(
    "--trackers", type=click.IntRange(1, 9), default=1, show_default=True, help="How many trackers share the table."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The first tracker's port; 0 takes a free one.",
)
@options.common
def up(peers: int, trackers: int, port: int, home: Path | None, as_json: bool) -> None:
    """Start trackers and N peers that run until `axon swarm down`."""
    from client_cli.context import Context
    from client_cli.demo.local_swarm import SwarmPlan, start_swarm

    context = Context.of(home, as_json)
    began = time.monotonic()

    def told(what: str, record: SwarmRecord) -> None:
        seconds = f"{time.monotonic() - began:.1f} s"
        if what == "trackers":
            for process, address in zip(record.tracker_processes, record.trackers, strict=True):
                context.say(f"  {process.name:<10}  ready   {seconds}   {address}")
        else:
            context.say(f"  {'peers':<10}  ready   {seconds}   {' '.join(found.name for found in record.peers)}")

    record = start_swarm(context.home, SwarmPlan(peers=peers, trackers=trackers, port=port), told)
    lines = ["Next:", f"  {context.command('submit', 'FOLDER')}", f"  {context.command('swarm', 'down')}"]
    data = {
        "trackers": record.trackers,
        "peers": [found.name for found in record.peers],
        "home": str(context.home),
        "seconds": round(time.monotonic() - began, 3),
    }
    context.answer("\n".join(lines), data)


@command.command("status")
@options.common
def status(home: Path | None, as_json: bool) -> None:
    """The processes of the swarm that run."""
    from axonp2p.plain_text import columns
    from client_cli.context import Context
    from client_cli.swarm_file import read_record, running

    context = Context.of(home, as_json)
    record = read_record(context.home)
    if record is None:
        answer = f"No swarm runs in {context.home}.  Start one: {context.command('swarm', 'up')}"
        context.answer(answer, {"trackers": [], "processes": [], "running": 0})
        return
    alive = {process.name: running(process) is not None for process in record.processes}
    rows = [
        [process.name, "running" if alive[process.name] else "ended", str(process.pid), process.home]
        for process in record.processes
    ]
    text = columns(["name", "state", "pid", "home"], rows, right=(2,))
    text += "".join(f"\n{process.name}: {url}" for process, url in zip(record.processes, record.trackers, strict=False))
    processes = [
        {"name": process.name, "running": alive[process.name], "pid": process.pid, "home": process.home}
        for process in record.processes
    ]
    context.answer(text, {"trackers": record.trackers, "processes": processes, "running": sum(alive.values())})


@command.command("down")
@options.common
def down(home: Path | None, as_json: bool) -> None:
    """Stop the swarm; keys and ledger stay for the next time."""
    from client_cli.context import Context
    from client_cli.demo.local_swarm import stop_swarm

    context = Context.of(home, as_json)
    stopped = stop_swarm(context.home)
    text = f"Stopped {', '.join(stopped)}." if stopped else f"No swarm ran in {context.home}."
    context.answer(text, {"stopped": stopped})
