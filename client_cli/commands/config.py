"""`axon config` and `axon config get | set | unset`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from client_cli import options

if TYPE_CHECKING:
    from axonp2p.settings import ToldSetting
    from client_cli.context import Context

SECTION = "client"


@click.group("config", invoke_without_command=True, short_help="Show the settings, or change one.")
@options.common
@click.pass_context
def command(ctx: click.Context, home: Path | None, as_json: bool) -> None:
    """Show this program's settings, where each comes from, and the file in which they are changed.

    The environment wins over config.toml, which wins over the default; options win over all. docs/settings.md says what
    each of them means. Change one: axon config set KEY VALUE.
    """
    if ctx.invoked_subcommand is not None:
        return
    from axonp2p.plain_text import columns
    from axonp2p.settings import CONFIG, ClientSettings, told_settings

    context = _context(ctx, home, as_json)
    told = told_settings(context.home, SECTION, ClientSettings)
    rows = [[one.name, _text(one.value), one.source] for one in told]
    path = context.home / CONFIG
    there = "" if path.exists() else "   (not written yet)"
    table = columns(["setting", "value", "from"], rows)
    text = f"{table}\n\nhome   {context.home}\nfile   {path}{there}, section [{SECTION}]"
    settings = {one.name: {"value": one.value, "from": one.source} for one in told}
    context.answer(text, {"home": str(context.home), "file": str(path), "settings": settings})


@command.command("get")
@click.argument("key")
@options.common
@click.pass_context
def get(ctx: click.Context, key: str, home: Path | None, as_json: bool) -> None:
    """Print the value of KEY alone, for scripts.

    Entries of a list are separated by spaces.
    """
    context = _context(ctx, home, as_json)
    one = _told(context, key)
    context.answer(_text(one.value, nothing=""), _data(one))


@command.command("set")
@click.argument("key")
@click.argument("values", metavar="VALUE...", nargs=-1, required=True)
@options.common
@click.pass_context
def set_(ctx: click.Context, key: str, values: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Write KEY = VALUE to config.toml; comments and order in it stay. A list takes several values.

    A value that the setting cannot have is refused, and the file is as it was.
    """
    from axonp2p.settings import ClientSettings
    from axonp2p.settings_check import value_of_words

    context = _context(ctx, home, as_json)
    value = value_of_words(ClientSettings, key, values, command=context.command("config", "set"))
    _check_addresses(key, value)
    _change(context, key, value)


@command.command("unset")
@click.argument("key")
@options.common
@click.pass_context
def unset(ctx: click.Context, key: str, home: Path | None, as_json: bool) -> None:
    """Take KEY out of config.toml: its default holds again."""
    _change(_context(ctx, home, as_json), key, None)


def _change(context: Context, key: str, value: Any) -> None:
    from axonp2p.settings import CONFIG, ClientSettings
    from axonp2p.settings_check import setting_of
    from axonp2p.settings_file import change_settings

    setting_of(ClientSettings, key)
    path = change_settings(context.home, {SECTION: {key: value}})
    one = _told(context, key)
    where = {CONFIG: f"{path}, section [{SECTION}]", "default": f"the default; {path} does not name it"}
    said = where.get(one.source, f"{one.source} says so, which wins over {path}")
    context.answer(f"{key} = {_text(one.value)}   ({said})", _data(one) | {"file": str(path)})


def _check_addresses(key: str, value: Any) -> None:
    """Raises `SettingsError` for what is a list, but of no addresses."""
    from axonp2p.transport.address import PinnedAddress, split_host_port

    for text in value if key in ("trackers", "dht-contacts") else ():
        PinnedAddress.parse(text) if key == "trackers" else split_host_port(text)


def _told(context: Context, key: str) -> ToldSetting:
    from axonp2p.settings import ClientSettings, told_settings
    from axonp2p.settings_check import setting_of

    setting_of(ClientSettings, key)
    return next(one for one in told_settings(context.home, SECTION, ClientSettings) if one.name == key)


def _data(one: ToldSetting) -> dict[str, Any]:
    return {"setting": one.name, "value": one.value, "from": one.source}


def _context(ctx: click.Context, home: Path | None, as_json: bool) -> Context:
    """Its options are those of the command, or stand before its name."""
    from client_cli.context import Context

    before = ctx.parent.params if ctx.parent is not None else {}
    return Context.of(home or before.get("home"), as_json or before.get("as_json", False))


def _text(value: object, nothing: str = "-") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(map(str, value)) or nothing
    return str(value)
