"""`axon-peer`: lend this machine. Commands are loaded when they are asked for, so that `--help` answers at once."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from axonp2p.command_group import LazyGroup, run_group
from axonp2p.missing_modules import wrong_system

COMMANDS = (
    "setup",
    "run",
    "status",
    "pause",
    "finish",
    "resume",
    "limits",
    "history",
    "logs",
    "page",
    "service",
    "doctor",
)


@click.group(
    cls=LazyGroup,
    package="peer_daemon.commands",
    names=COMMANDS,
    beside={"finish": "pause", "resume": "pause"},
    name="axon-peer",
    meant={
        "start": ("run", "resume (after a pause)"),
        "stop": ("pause", "finish", "Ctrl-C where it runs"),
        "config": ("limits", "setup"),
        "open": ("page",),
    },
    no_args_is_help=True,
)
@click.version_option(package_name="axonp2p", prog_name="axon-peer")
def cli() -> None:
    """Lend the idle time of this machine to people who train models.

    Begin with: axon-peer setup.  Does this machine keep strangers' code in?  axon-peer doctor.
    """
    if sys.platform != "linux":
        raise wrong_system("axon-peer", "Linux")


def main() -> NoReturn:
    """Run the program and end with the exit code of docs/errors.md."""
    sys.exit(run_group(cli, "axon-peer"))


if __name__ == "__main__":
    main()
