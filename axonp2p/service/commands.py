"""`service install | uninstall | status` of a program, made from what it says of itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from axonp2p.command_group import json_and_debug
from axonp2p.errors import SettingsError
from axonp2p.service.unit import Unit

_HIDDEN_FROM_SERVICES = ("/home", "/root", "/run/user")
"""`ProtectHome` in the unit of a whole machine's service."""


@dataclass(frozen=True)
class ServiceProgram:
    """A program that can run in the background."""

    name: str
    """As it is typed in."""
    what: str
    """It, in a sentence: "the peer"."""
    text: Callable[[str, Path, Unit], str]
    """The unit's text, from the interpreter, the home folder and which unit it is."""
    home: Callable[[Path | None], Path]
    """The home folder, from what `--home` says."""
    keeps: str
    """The files that stay when the service is removed."""
    logs: str = ""
    """The command that shows its log, where it keeps one of its own."""
    system_home: str = ""
    """Its home as a service of the whole machine, which systemd makes; empty: it is a person's only."""


def service_group(program: ServiceProgram) -> click.Group:
    """The commands."""

    @click.group("service", no_args_is_help=True, help=f"Run {program.what} in the background (systemd).")
    def group() -> None: ...

    @group.command("install", help=_install_help(program))
    @click.option("--print", "only_print", is_flag=True, help="Only print the systemd unit, and change nothing.")
    @_options(program)
    def install(only_print: bool, home: Path | None, as_json: bool, system: bool = False) -> None:
        from axonp2p.console import print_answer

        _install(program, Unit(program.name, system), home, as_json, print_answer, only_print=only_print)

    @group.command("uninstall", help=f"Stop the service and remove it; {program.keeps} stay.")
    @_options(program)
    def uninstall(home: Path | None, as_json: bool, system: bool = False) -> None:
        from axonp2p.console import print_answer

        _uninstall(program, Unit(program.name, system), home, as_json, print_answer)

    @group.command("status", help="Whether the service is installed, and whether it runs.")
    @_options(program)
    def status(home: Path | None, as_json: bool, system: bool = False) -> None:
        from axonp2p.console import print_answer

        _status(program, Unit(program.name, system), as_json, print_answer)

    return group


def _options(program: ServiceProgram) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        if program.system_home:
            text = "The service of the whole machine, as a user of its own; needs root."
            command = click.option("--system", is_flag=True, help=text)(command)
        folder = click.Path(path_type=Path, file_okay=False)
        return json_and_debug(click.option("--home", type=folder, help=f"Folder of {program.what}.")(command))

    return add


def _install_help(program: ServiceProgram) -> str:
    when = "now and at each login"
    more = ", or with --system whenever this machine starts" if program.system_home else ""
    return f"Write the service, and start it {when}{more}. Undo: {program.name} service uninstall."


Answer = Callable[..., None]


def _install(
    program: ServiceProgram, unit: Unit, home: Path | None, as_json: bool, answer: Answer, *, only_print: bool
) -> None:
    from axonp2p.service import manager

    if unit.system and home is not None:
        raise SettingsError(
            f"a service of the whole machine cannot write to {home}",
            cause=f"it has a user of its own, and its folder is {program.system_home}",
            fix=f"{program.name} service install --system",
        )
    text = _text(program, unit, home)
    if only_print:
        answer(text.rstrip("\n"), {"text": text}, as_json=as_json)
        return
    if unit.system and (hidden := _hidden_interpreter()):
        raise SettingsError(
            f"a service of the whole machine cannot read {hidden}",
            cause="the homes of people are closed to it",
            fix=f"python3 -m venv /opt/axon && /opt/axon/bin/pip install axonp2p[{program.name.removeprefix('axon-')}]"
            f" && /opt/axon/bin/{program.name} service install --system",
        )
    path = unit.path(Path.home())
    wrote = manager.install(path, text)
    trouble = manager.why_no_manager(unit)
    lines = [f"{'Wrote' if wrote else 'Is there already:'} {path}"]
    if trouble:
        lines += [f"Not started: {trouble}.", "Then:", *(f"  {' '.join(words)}" for words in unit.begin)]
    else:
        manager.carry_out(unit, unit.begin)
        when = "whenever this machine starts" if unit.system else "at each login"
        lines.append(f"It runs now, and {when}.   How it is: {program.name} status    undo: {_undo(program, unit)}")
        if not unit.system and not manager.lingers():
            lines.append("It ends when you log out. To keep it running: loginctl enable-linger")
    data = {"path": str(path), "written": wrote, "started": not trouble, "trouble": trouble}
    answer("\n".join(lines), data, as_json=as_json)


def _uninstall(program: ServiceProgram, unit: Unit, home: Path | None, as_json: bool, answer: Answer) -> None:
    from axonp2p.service import manager

    path = unit.path(Path.home())
    trouble = manager.why_no_manager(unit)
    if path.exists() and not trouble:
        manager.carry_out(unit, unit.end)
    removed = manager.remove(path)
    lines = [f"Removed {path}" if removed else f"No service was installed ({path} is not there)."]
    if removed and trouble:
        lines += [f"Not stopped: {trouble}.", "Then:", *(f"  {' '.join(words)}" for words in unit.late_end)]
    elif removed:
        manager.carry_out(unit, unit.forget)
        lines.append(f"{program.keeps[0].upper()}{program.keeps[1:]} stay in {_home(program, unit, home)}.")
    answer("\n".join(lines), {"path": str(path), "removed": removed, "trouble": trouble}, as_json=as_json)


def _status(program: ServiceProgram, unit: Unit, as_json: bool, answer: Answer) -> None:
    import dataclasses

    from axonp2p.service import manager

    found = manager.look(unit, unit.path(Path.home()))
    if not found.written:
        text = f"No service is installed.   {program.name} service install{' --system' if unit.system else ''}"
    elif found.trouble:
        text = f"Installed ({found.path}).   Whether it runs is not known: {found.trouble}"
    else:
        text = f"Installed ({found.path}), {found.enabled}, {found.active}"
        why = " or ".join(filter(None, [program.logs, unit.journal]))
        text += "" if found.active == "active" else f".   Why: {why}"
        text += "" if found.lingers else ".   It ends when you log out; to keep it running: loginctl enable-linger"
    answer(text, dataclasses.asdict(found), as_json=as_json)


def _text(program: ServiceProgram, unit: Unit, home: Path | None) -> str:
    # The interpreter's path is that of the virtual environment, not of what it links to.
    return program.text(os.path.abspath(sys.executable), _home(program, unit, home), unit)


def _home(program: ServiceProgram, unit: Unit, home: Path | None) -> Path:
    return Path(program.system_home) if unit.system and home is None else program.home(home)


def _undo(program: ServiceProgram, unit: Unit) -> str:
    return f"{program.name} service uninstall{' --system' if unit.system else ''}"


def _hidden_interpreter() -> str:
    prefix = os.path.abspath(sys.prefix)
    return prefix if prefix.startswith(tuple(f"{folder}/" for folder in _HIDDEN_FROM_SERVICES)) else ""
