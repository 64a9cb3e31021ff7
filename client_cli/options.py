"""Options that commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """`--json`, `--home` and `--debug`: every command has them."""
    home = click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of key, settings and jobs (default: AXON_HOME, or the desktop's usual place).",
    )
    return json_and_debug(home(command))


def json_and_debug(command: F) -> F:
    """The same without `--home`, for a command that means something else by it."""
    # main() looks for both before anything is parsed, because they must hold for errors of parsing too.
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error too.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
    return as_json(debug(command))


def trackers(command: F) -> F:
    """`--tracker URL`, as often as wanted."""
    return click.option(
        "--tracker",
        "trackers",
        metavar="URL",
        multiple=True,
        help="Address as axon-tracker run prints it; may be given more than once. "
        "Default: config.toml, else the swarm that axon swarm up started.",
    )(command)
