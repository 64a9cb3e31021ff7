"""`axon`: the entry point. Commands are loaded when they are asked for, so that `axon --help` answers at once."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click
from click.exceptions import NoSuchCommand

from axonp2p.console import run_program
from client_cli.interrupts import TERMINATED_EXIT, Terminated, hear_sigterm

COMMANDS = (
    "demo",
    "init",
    "check",
    "submit",
    "resume",
    "jobs",
    "status",
    "fetch",
    "peers",
    "credits",
    "doctor",
    "swarm",
    "version",
)


class LazyGroup(click.Group):
    """A group whose commands live in `client_cli/commands/`, one module each, in the order of a job's life."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"client_cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            # click would look for similar names among the commands that are loaded: none.
            raise NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None


@click.group(cls=LazyGroup, name="axon", no_args_is_help=True)
@click.version_option(package_name="axonp2p", prog_name="axon")
def cli() -> None:
    """Train PyTorch models on machines that people lend.

    Try it on this computer alone: axon demo.  Your own model: axon init my-job, then axon check my-job and
    axon submit my-job.
    """


def main() -> NoReturn:
    """Run the program and end with the exit code of docs/errors.md."""
    arguments = sys.argv[1:]
    hear_sigterm()
    try:
        code = run_program(_body, debug="--debug" in arguments, as_json="--json" in arguments)
    except Terminated:
        code = TERMINATED_EXIT
    sys.exit(code)


def _body() -> int:
    try:
        return int(cli.main(prog_name="axon", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None


if __name__ == "__main__":
    main()
