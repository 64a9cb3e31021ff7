"""`axon-tracker`: the command line."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import click

import axonp2p
from axonp2p.clock import SystemClock
from axonp2p.command_group import HELP_OPTIONS, ProgramGroup, json_and_debug, run_group
from axonp2p.errors import WouldOverwrite
from axonp2p.files import locked, write_whole
from axonp2p.identity.peer_id import short
from axonp2p.logs import configure_logs, get_logger
from axonp2p.settings import TrackerSettings, home_folder, read_settings, with_flags
from axonp2p.supervision import in_background
from tracker import service
from tracker.api.status import print_status
from tracker.app import Tracker
from tracker.log.maintenance import back_up, check_home, new_log
from tracker.log.maintenance import restore as restore_home
from tracker.log.maintenance_text import print_checked

log = get_logger(__name__)


@click.group(cls=ProgramGroup, context_settings=HELP_OPTIONS)
@click.version_option(axonp2p.__version__, prog_name="axon-tracker")
def main() -> None:
    """Run one of several trackers: it keeps the table of peers, signs reservations, stores receipts."""
    os.umask(0o077)  # what it keeps is for its owner alone, also in a folder that others may enter


@main.command()
@click.option("--listen", metavar="HOST:PORT", help="Where peers and clients reach it; port 0 takes a free one.")
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Folder for key, settings and database.")
@click.option(
    "--tracker",
    "trackers",
    metavar="ADDRESS",
    multiple=True,
    help="Another tracker to share the table with; repeatable.",
)
@click.option(
    "--vouch-for",
    "vouches_for",
    metavar="ADDRESS",
    multiple=True,
    help="Another tracker to share the table with, which peers that trust this one shall trust too; repeatable.",
)
@click.option(
    "--certificate",
    metavar="FILE",
    help="A certificate that an authority vouches for (PEM); the address is then https://HOST:PORT.",
)
@click.option("--key", "certificate_key", metavar="FILE", help="The key of that certificate (PEM).")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    metavar="NETWORK",
    multiple=True,
    help="A TCP proxy that says by the PROXY protocol who calls, such as 127.0.0.1; repeatable.",
)
@click.option("--page-listen", metavar="HOST:PORT", help="The operator's page, on loopback.  [127.0.0.1:7073]")
@click.option("--metrics-listen", metavar="HOST:PORT", help="Metrics for Prometheus.  [127.0.0.1:7074]")
@click.option("--json-logs", is_flag=True, help="Write logs as JSON, one object a line.")
@click.option("--debug", is_flag=True, help="Write more logs, and tracebacks of errors.")
def run(
    listen: str | None,
    home: Path | None,
    trackers: tuple[str, ...],
    vouches_for: tuple[str, ...],
    certificate: str | None,
    certificate_key: str | None,
    trusted_proxies: tuple[str, ...],
    page_listen: str | None,
    metrics_listen: str | None,
    json_logs: bool,
    debug: bool,
) -> None:
    """Run the tracker until it is stopped with Ctrl-C or SIGTERM."""
    configure_logs(level="debug" if debug else "info", as_json=json_logs, sentences={})

    folder = home_folder("tracker", home)
    settings = with_flags(
        read_settings(folder).tracker,
        listen=listen,
        trackers=list(trackers) or None,
        vouches_for=list(vouches_for) or None,
        certificate=_absolute(certificate),
        certificate_key=_absolute(certificate_key),
        trusted_proxies=list(trusted_proxies) or None,
        page_listen=page_listen,
        metrics_listen=metrics_listen,
    )
    with locked(
        folder / "lock",
        f"a tracker already runs with {folder}",
        fix="stop it, or give this one its own folder and port: axon-tracker run --home DIR --listen 0.0.0.0:0",
    ):
        asyncio.run(serve(folder, settings))


_HOME = click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="Folder of the tracker.")


@main.command(short_help="How the running tracker is, and how far others are behind.")
@_HOME
@json_and_debug
def status(home: Path | None, as_json: bool) -> None:
    """Show the running tracker's table and how far each other tracker is behind."""
    print_status(home_folder("tracker", home), as_json=as_json)


@main.command(short_help="Prove the log, entry by entry; the tracker may run.")
@click.option("--offline", is_flag=True, help="Do not ask other trackers which heads of this log they hold.")
@click.option("--tracker", "trackers", metavar="ADDRESS", multiple=True, help="Another tracker to ask; repeatable.")
@_HOME
@json_and_debug
def check(home: Path | None, trackers: tuple[str, ...], offline: bool, as_json: bool) -> int:
    """Verify the log: each entry, its signatures and hashes, and all signed heads. The tracker may run."""
    folder = home_folder("tracker", home)
    settings = with_flags(read_settings(folder).tracker, trackers=list(trackers) or None)
    checked = check_home(folder, settings, offline=offline)
    return print_checked(checked, as_json=as_json)


@main.command(short_help="Copy the database to FILE, and verify the copy.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is there.")
@_HOME
@json_and_debug
def backup(file: Path, overwrite: bool, home: Path | None, as_json: bool) -> int:
    """Copy the database to FILE, and verify the copy; the tracker may run. The key is not in the copy."""
    if file.exists() and not overwrite:
        raise WouldOverwrite(
            f"{file} would be overwritten", fix=f"axon-tracker backup {file} --overwrite    or name another file"
        )
    checked = back_up(home_folder("tracker", home), file)
    return print_checked(checked, as_json=as_json, said=f"backed up to {file}")


@main.command(short_help="Verify a backup, and put it back.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@_HOME
@json_and_debug
def restore(file: Path, home: Path | None, as_json: bool) -> int:
    """Verify the backup FILE and put it back; the tracker must not run.

    Other trackers hand over what came since. The log gets a new name: heads that were signed since the backup
    was made cannot be kept.
    """
    checked, aside = restore_home(home_folder("tracker", home), file)
    kept = f"; the old database is {aside}" if aside else ""
    return print_checked(checked, as_json=as_json, said=f"restored from {file}{kept}")


@main.command("new-log", short_help="Begin a new log, where entries are lost for good.")
@_HOME
@json_and_debug
def begin_new_log(home: Path | None, as_json: bool) -> int:
    """Begin a new log with the entries that are left; the tracker must not run.

    This is for a log that lost entries which no other tracker and no backup has. Trackers and peers that watched the
    log are told.
    """
    checked = new_log(home_folder("tracker", home))
    return print_checked(checked, as_json=as_json, said="a new log is begun with the entries that are left")


def _absolute(file: str | None) -> str | None:
    """A file of an option is one of the folder in which it was typed; in config.toml it is one of the home."""
    return str(Path(file).expanduser().absolute()) if file else None


async def serve(home: Path, settings: TrackerSettings) -> None:
    """Serve until SIGTERM or SIGINT. Tells where on stdout and in `home/address`."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    renewing: set[asyncio.Task[None]] = set()

    def renew() -> None:
        in_background(renewing, tracker.renew_certificate())

    loop.add_signal_handler(signal.SIGHUP, renew)
    sign = home / "address"
    sign.unlink(missing_ok=True)  # a killed tracker leaves it behind
    tracker = Tracker(home, settings, SystemClock(), random.Random())
    try:
        address = await tracker.start()
        write_whole(sign, f"{address}\n".encode())
        doors = tracker.own_doors
        more = [f"  {name} {at}" for name, at in (("page", doors.page), ("metrics", doors.metrics)) if at]
        print(f"tracker {short(tracker.key.peer_id)}  {address}{''.join(more)}", flush=True)
        await stopped.wait()
        log.info("tracker stops")
    finally:
        sign.unlink(missing_ok=True)
        await tracker.stop()


main.add_command(service.service)

if __name__ == "__main__":
    sys.exit(run_group(main, "axon-tracker"))
