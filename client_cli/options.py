"""Options that commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """`--json`, `--home` and `--debug`: every command has them."""
    debug = click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error too.", callback=_read_in_main
    )
    home = click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of key, settings and jobs (default: AXON_HOME, or the desktop's usual place).",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
    return as_json(home(debug(command)))


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


def _read_in_main(context: click.Context, option: click.Parameter, value: bool) -> bool:
    # main() looks for it before anything is parsed, because it must hold for errors of parsing too.
    return value
