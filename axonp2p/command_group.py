"""A program of many commands: each is loaded when it is asked for, so that `--help` answers at once."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.exceptions import NoSuchCommand

from axonp2p.console import print_error, run_program
from axonp2p.errors import UsageWrong
from axonp2p.plain_text import mebibytes_of, seconds_of

F = TypeVar("F", bound=Callable[..., Any])

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
"""`context_settings` of a program: its commands have them too."""


class _OutputClosed(Exception):
    """A BrokenPipeError on its way past click, which would end the program with 1."""


class ProgramGroup(click.Group):
    """The commands of a program, listed in the order in which they were written."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError as error:  # of --help or --version
            raise _OutputClosed from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _OutputClosed from error


class LazyGroup(ProgramGroup):
    """A group whose commands live in `package`, in the order of `names`: each is `command` of the module of its name.

    `beside` says which others live in the module of another command, under their own names; `meant` which commands
    people mean by words that no command has.
    """

    def __init__(
        self,
        *arguments: Any,
        package: str,
        names: Sequence[str],
        beside: Mapping[str, str] | None = None,
        meant: Mapping[str, Sequence[str]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **{"context_settings": HELP_OPTIONS} | more)
        self._package = package
        self._names = list(names)
        self._beside = beside or {}
        self._meant = meant or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._names

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._names:
            return None
        module = importlib.import_module(f"{self._package}.{self._beside.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name if cmd_name in self._beside else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            # click would look for similar names among the commands that are loaded: none.
            if meant := self._meant.get(error.command_name):
                message = f"No such command {error.command_name!r}. Did you mean {' or '.join(meant)}?"
                raise NoSuchCommand(error.command_name, message=message, ctx=ctx) from None
            raise NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None


class Duration(click.ParamType[float]):
    """A time as people write it, such as 2h, 30m, 90s or 1h30m; becomes seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Fails for what is no time, or none at all."""
        if isinstance(value, float):
            return value
        seconds = seconds_of(value)
        if not seconds:
            self.fail(f"{value!r} is no time; such as 2h, 30m or 90s", param, ctx)
        return seconds


class Size(click.ParamType[int]):
    """Memory or disk as people write it, such as 4GiB, 4 GB or 512 (MiB); becomes MiB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Fails for what is no size, or none at all."""
        if isinstance(value, int):
            return value
        size = mebibytes_of(value)
        if not size:
            self.fail(f"{value!r} is no size; such as 4GiB, 4GB, or 512 for MiB", param, ctx)
        return size


def json_and_debug(command: F) -> F:
    """`--json` and `--debug`, which every command has."""
    # run_group() looks for both before anything is parsed, because they must hold for errors of parsing too.
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error too.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
    return as_json(debug(command))


def run_group(group: click.Group, name: str) -> int:
    """Run the program `name` with this process's arguments; the exit code of docs/errors.md."""

    arguments = sys.argv[1:]
    as_json = not {"--json", "--json-events", "--json-logs"}.isdisjoint(arguments)

    def body() -> int:
        try:
            return int(group.main(prog_name=name, standalone_mode=False) or 0)
        except click.ClickException as error:
            if as_json:
                print_error(_as_ours(error, name), as_json=True)
            else:
                error.show()
            return error.exit_code
        except click.Abort:
            raise KeyboardInterrupt from None
        except _OutputClosed:
            raise BrokenPipeError from None

    return run_program(body, debug="--debug" in arguments, as_json=as_json)


def _as_ours(error: click.ClickException, name: str) -> UsageWrong:
    """A wrong command line as one of our errors, for programs."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else name
    usage = " ".join(context.get_usage().split()) if context else ""
    return UsageWrong(error.format_message(), cause=usage, fix=f"{path} --help")
