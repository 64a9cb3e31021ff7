"""Options that commands share, and what they mean: the home, the limits, how commands are named to people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from axonp2p.command_group import json_and_debug
from axonp2p.settings import home_folder

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """`--json`, `--home` and `--debug`: every command has them."""
    return json_and_debug(with_home(command))


def with_home(command: F) -> F:
    """`--home DIR`."""
    return click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder of key, settings and state (default: AXON_HOME, or the desktop's usual place).",
    )(command)


def peer_home(home: Path | None) -> Path:
    """The peer's home, made when it is not there. Raises `SettingsError`."""
    return home_folder("peer", home)


def next_command(home: Path, *words: str) -> str:
    """A command of this program that works as it stands: with the same home when it is not the usual one."""
    usual = home == home_folder("peer", None)
    return " ".join(["axon-peer", *words, *([] if usual else ["--home", str(home)])])
