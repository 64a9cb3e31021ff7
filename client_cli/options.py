"""Options that commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from axonp2p.command_group import Duration, json_and_debug

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """`--json`, `--home` and `--debug`: every command has them."""
    home = click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of key, settings and jobs (default: AXON_HOME, or the desktop's usual place).",
    )
    return json_and_debug(home(command))


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


def wait(command: F) -> F:
    """`--wait TIME`."""
    return click.option(
        "--wait",
        type=Duration(),
        metavar="TIME",
        default=0.0,
        help="Where too few peers are free, wait for them so long, such as 10min or 2h. [default: do not wait]",
    )(command)


def page(command: F) -> F:
    """`--page HOST:PORT`."""
    return click.option(
        "--page",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        show_default=True,
        help="Where the job's page is served, on loopback; port 0 takes a free one, an empty text serves none.",
    )(command)


def _with_its_library(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    if folder:
        from client_cli.report.tensorboard import require_tensorboard

        require_tensorboard()
    return folder


def tensorboard(command: F) -> F:
    """`--tensorboard DIR`."""
    return click.option(
        "--tensorboard",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        callback=_with_its_library,
        help="Also write event files for TensorBoard, into DIR/JOB; needs axonp2p[tensorboard].",
    )(command)
