"""`axon-peer run`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from axonp2p.command_group import Size
from peer_daemon.options import with_home


@click.command("run")
@click.option(
    "--tracker", "trackers", multiple=True, metavar="URL", help="As `axon-tracker run` prints it; repeatable."
)
@click.option("--dht-contact", "dht_contacts", multiple=True, metavar="HOST:PORT", help="A DHT node (UDP); repeatable.")
@with_home
@click.option("--listen", metavar="HOST:PORT", help="What clients and other peers dial.  [0.0.0.0:7071]")
@click.option("--name", help="What people see.  [made from the key]")
@click.option("--cores", type=click.IntRange(min=1), help="Cores for each job.  [half of them]")
@click.option(
    "--memory", "memory_mb", type=Size(), help="Memory for each job, such as 4GiB, 4GB, or 512 for MiB.  [half]"
)
@click.option("--slots", type=click.IntRange(1, 64), help="Jobs at a time.  [1]")
@click.option(
    "--others-cpu",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="Jobs wait while other programs use more than this percentage of all cores; 100: never.  [25]",
)
@click.option("--page", metavar="HOST:PORT", help="Where the status page is, on loopback.  [127.0.0.1:7072]")
@click.option("--json-logs", is_flag=True, help="One JSON object a line, also at a terminal.")
@click.option("--debug", is_flag=True, help="Say more, and show tracebacks.")
def command(
    trackers: tuple[str, ...],
    dht_contacts: tuple[str, ...],
    home: Path | None,
    listen: str | None,
    name: str | None,
    cores: int | None,
    memory_mb: int | None,
    slots: int | None,
    others_cpu: int | None,
    page: str | None,
    json_logs: bool,
    debug: bool,
) -> None:
    """Announce this machine and run jobs in a sandbox, until Ctrl-C."""
    # Nothing that this program makes is anybody else's business: keys, job files, receipts, logs.
    os.umask(0o077)
    import asyncio
    from datetime import datetime

    from axonp2p.errors import AxonError
    from axonp2p.logs import configure_logs
    from axonp2p.settings import read_settings, with_flags
    from peer_daemon.control.status import LimitsAsked
    from peer_daemon.log_file import leave_last_words, log_path
    from peer_daemon.log_sentences import SENTENCES
    from peer_daemon.options import peer_home
    from peer_daemon.owner.limits_file import with_limits
    from peer_daemon.serving import serve

    folder = peer_home(home)
    level = "debug" if debug else "info"
    configure_logs(level=level, as_json=json_logs, file=log_path(folder), sentences=SENTENCES)
    try:
        settings = with_flags(
            read_settings(folder).peer,
            trackers=list(trackers) or None,
            dht_contacts=list(dht_contacts) or None,
            listen=listen,
            name=name,
            cores=cores,
            memory_mb=memory_mb,
            slots=slots,
            page=page,
        )
        asyncio.run(serve(folder, with_limits(settings, LimitsAsked(others_cpu=others_cpu))))
    except AxonError as error:
        leave_last_words(log_path(folder), error, datetime.now())
        raise
