"""`axon-peer`: lend this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from axonp2p.console import run_program
from axonp2p.logs import configure_logs
from axonp2p.settings import home_folder, read_settings, with_flags


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="axonp2p", prog_name="axon-peer")
def main() -> None:
    """Lend the idle time of this machine to people who train models."""


@main.command()
@click.option(
    "--tracker", "trackers", multiple=True, metavar="URL", help="As `axon-tracker run` prints it; repeatable."
)
@click.option("--dht-contact", "dht_contacts", multiple=True, metavar="HOST:PORT", help="A DHT node (UDP); repeatable.")
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Where key, settings and state lie.")
@click.option("--listen", metavar="HOST:PORT", help="What clients and other peers dial.  [0.0.0.0:7071]")
@click.option("--name", help="What people see.  [made from the key]")
@click.option("--cores", type=click.IntRange(min=1), help="Cores for each job.  [half of them]")
@click.option("--memory", "memory_mb", type=click.IntRange(min=64), metavar="MIB", help="Memory for each job.  [half]")
@click.option("--slots", type=click.IntRange(1, 64), help="Jobs at a time.  [1]")
@click.option("--json-logs", is_flag=True, help="One JSON object a line instead of text.")
@click.option("--debug", is_flag=True, help="Say more, and show tracebacks.")
def run(
    trackers: tuple[str, ...],
    dht_contacts: tuple[str, ...],
    home: Path | None,
    listen: str | None,
    name: str | None,
    cores: int | None,
    memory_mb: int | None,
    slots: int | None,
    json_logs: bool,
    debug: bool,
) -> None:
    """Announce this machine and run jobs in a sandbox, until Ctrl-C."""
    # Nothing that this program makes is anybody else's business: keys, job files, receipts.
    os.umask(0o077)
    configure_logs(level="debug" if debug else "info", as_json=json_logs)

    def body() -> None:
        from peer_daemon.serving import serve  # heavy: `--help` does without it

        folder = home_folder("peer", home)
        settings = with_flags(
            read_settings(folder).peer,
            trackers=list(trackers) or None,
            dht_contacts=list(dht_contacts) or None,
            listen=listen,
            name=name,
            cores=cores,
            memory_mb=memory_mb,
            slots=slots,
        )
        asyncio.run(serve(folder, settings))

    sys.exit(run_program(body, debug=debug, as_json=json_logs))


if __name__ == "__main__":
    main()
