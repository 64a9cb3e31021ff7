"""`axon version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from axonp2p import __version__
from client_cli.options import common
from client_cli.text.render import pairs

LIBRARIES = ("torch", "numpy", "aiohttp", "safetensors")


@click.command("version", short_help="Versions of Axon and of its libraries.")
@common
def command(home: Path | None, as_json: bool) -> None:
    """Versions of Axon and of what it stands on."""
    from client_cli.context import Context

    found = {"axon": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    Context.of(home, as_json).answer(pairs(found), found)
