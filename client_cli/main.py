"""`axon`: the entry point. Commands are loaded when they are asked for, so that `axon --help` answers at once."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

import click

from axonp2p.command_group import LazyGroup, run_group
from client_cli.interrupts import TERMINATED_EXIT, Terminated, hear_sigterm

COMMANDS = (
    "demo",
    "init",
    "check",
    "submit",
    "watch",
    "status",
    "jobs",
    "page",
    "logs",
    "pause",
    "resume",
    "stop",
    "cancel",
    "fetch",
    "export",
    "report",
    "rm",
    "peers",
    "credits",
    "trust",
    "verdict",
    "doctor",
    "config",
    "swarm",
    "completion",
    "version",
)
"""In the order in which people use them."""


_FEW_COLLECTIONS = 20_000
"""New objects after which garbage is looked for. Loading modules makes thousands of them, and none is garbage."""

BESIDE = {
    "stop": "pause",
    "cancel": "pause",
    "export": "fetch",
    "status": "jobs",
    "verdict": "trust",
    "version": "doctor",
    "page": "report",
}
"""Commands of one family are in one module."""


@click.group(
    cls=LazyGroup, package="client_cli.commands", names=COMMANDS, beside=BESIDE, name="axon", no_args_is_help=True
)
@click.version_option(package_name="axonp2p", prog_name="axon")
def cli() -> None:
    """Train PyTorch models, and run commands, on machines that people lend.

    Try it on this computer alone: axon demo.  Your own model: axon init my-job, then axon check my-job and
    axon submit my-job.  A command on many machines: axon init --kind run my-job.
    """


def main() -> NoReturn:
    """Run the program and end with the exit code of docs/errors.md."""
    gc.set_threshold(_FEW_COLLECTIONS)
    hear_sigterm()
    try:
        code = run_group(cli, "axon")
    except Terminated:
        code = TERMINATED_EXIT
    # All is written and closed by now. The interpreter would still look through every object: a tenth of a second.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
