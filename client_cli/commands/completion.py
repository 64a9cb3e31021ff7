"""`axon completion SHELL`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options

HOW = {
    "bash": 'eval "$(axon completion bash)"      in ~/.bashrc',
    "zsh": 'eval "$(axon completion zsh)"      in ~/.zshrc, after compinit',
    "fish": "axon completion fish > ~/.config/fish/completions/axon.fish",
}


@click.command("completion", short_help="Print what completes commands, options and job ids in a shell.")
@click.argument("shell", type=click.Choice(list(HOW)))
@options.common
def command(shell: str, home: Path | None, as_json: bool) -> None:
    """Print the script with which SHELL completes commands, options and the ids of jobs.

    \b
    bash:  eval "$(axon completion bash)"      in ~/.bashrc
    zsh:   eval "$(axon completion zsh)"       in ~/.zshrc, after compinit
    fish:  axon completion fish > ~/.config/fish/completions/axon.fish
    """
    from click.shell_completion import get_completion_class

    from client_cli.context import Context

    kind = get_completion_class(shell)
    assert kind is not None  # the choice has only those that click knows
    # The root of this very program: its name is the one that is completed.
    root = click.get_current_context().find_root()
    script = kind(root.command, {}, "axon", "_AXON_COMPLETE").source()
    Context.of(home, as_json).answer(script, {"shell": shell, "script": script, "install": HOW[shell]})
