"""`axon config`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common


@click.command("config", short_help="Show the settings, and where each comes from.")
@common
def command(home: Path | None, as_json: bool) -> None:
    """Show this program's settings, where each comes from, and the file in which they are changed.

    The environment wins over config.toml, which wins over the default; options win over all. docs/settings.md says what
    each of them means.
    """
    from axonp2p.plain_text import columns
    from axonp2p.settings import CONFIG, ClientSettings, told_settings
    from client_cli.context import Context

    context = Context.of(home, as_json)
    told = told_settings(context.home, "client", ClientSettings)
    rows = [[one.name, _text(one.value), one.source] for one in told]
    path = context.home / CONFIG
    there = "" if path.exists() else "   (not written yet)"
    table = columns(["setting", "value", "from"], rows)
    text = f"{table}\n\nhome   {context.home}\nfile   {path}{there}, section [client]"
    settings = {one.name: {"value": one.value, "from": one.source} for one in told}
    context.answer(text, {"home": str(context.home), "file": str(path), "settings": settings})


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return str(value)
