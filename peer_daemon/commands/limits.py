"""`axon-peer limits`."""

from __future__ import annotations

from pathlib import Path

import click

from axonp2p.command_group import Size
from peer_daemon.options import common


@click.command("limits")
@click.option("--cores", type=click.IntRange(min=1), help="Cores for each job.")
@click.option("--memory", "memory_mb", type=Size(), help="Memory for each job, such as 4GiB, 4GB, or 512 for MiB.")
@click.option("--disk", "disk_mb", type=Size(), help="Disk for each job, in the same words.")
@click.option("--slots", type=click.IntRange(1, 64), help="Jobs at a time.")
@click.option(
    "--hours",
    multiple=True,
    metavar="HOURS",
    help='When jobs may run, such as "Mon-Fri 18:00-08:00" or "Sat,Sun"; repeatable; "any": at any time.',
)
@click.option("--on-battery/--no-battery", "on_battery", default=None, help="Whether jobs run on battery.")
@click.option(
    "--others-cpu",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="Jobs wait while other programs use more than this percentage of all cores; 100: never.",
)
@click.option(
    "--yield-to",
    multiple=True,
    metavar="PROGRAM",
    help='A program that has the machine for itself while it runs, such as blender; repeatable; "none": no program.',
)
@click.option("--in-use/--no-in-use", "in_use_run", default=None, help="Whether jobs run while somebody uses it.")
@click.option(
    "--in-use-cores", type=click.IntRange(min=0), help="Cores for each job while somebody uses it; 0: as --cores says."
)
@common
def command(
    cores: int | None,
    memory_mb: int | None,
    disk_mb: int | None,
    slots: int | None,
    hours: tuple[str, ...],
    on_battery: bool | None,
    others_cpu: int | None,
    yield_to: tuple[str, ...],
    in_use_run: bool | None,
    in_use_cores: int | None,
    home: Path | None,
    as_json: bool,
) -> None:
    """Show what jobs may use and when, or change it.

    Values given as options change at once, and in config.toml.
    """
    import asyncio

    import msgspec

    from axonp2p.console import print_answer
    from peer_daemon.control.caller import ask_status, change_limits
    from peer_daemon.control.status import LimitsAsked
    from peer_daemon.options import peer_home
    from peer_daemon.owner.status_text import limits_text

    folder = peer_home(home)
    asked = LimitsAsked(
        cores=cores,
        memory_mb=memory_mb,
        disk_mb=disk_mb,
        slots=slots,
        hours=[entry for entry in hours if entry.strip().lower() != "any"] if hours else None,
        on_battery=on_battery,
        others_cpu=others_cpu,
        yield_to=[name for name in yield_to if name.strip().lower() != "none"] if yield_to else None,
        in_use_run=in_use_run,
        in_use_cores=in_use_cores,
    )
    told = asyncio.run(ask_status(folder) if asked == LimitsAsked() else change_limits(folder, asked))
    print_answer(limits_text(told), msgspec.to_builtins(told.limits), as_json=as_json)
