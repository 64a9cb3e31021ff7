"""`axon check DIR`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import trackers as trackers_option


@click.command("check")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@trackers_option
@common
def command(folder: Path, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Look for mistakes in the job in FOLDER before anything is sent.

    Reads job.toml and the files that it names, and asks the trackers, where they can be reached, how many peers would
    take the job. Of a training it takes one step here in a process of its own; where job.toml has checks, it takes some
    steps twice: does what is done again lead to the same end? Of copies of a command it runs the first one here for
    some seconds, in the sandbox in which peers run it. Packages that the job brings along are resolved, and said who
    would not take them.

    Exit code 8: there is no mistake, but fewer peers would take the job now than it needs to begin.
    """
    from axonp2p.errors import NobodyFits
    from axonp2p.jobs.bundle import collect
    from axonp2p.jobs.kinds import load
    from axonp2p.jobs.spec import read_spec
    from client_cli.check_peers import ask_peers, with_packages
    from client_cli.context import Context
    from client_cli.kinds import STORIES

    context = Context.of(home, as_json)
    spec = read_spec(folder)
    bundle = collect(folder, spec)
    packages = ""
    if spec.packages.wanted:
        bundle, packages = with_packages(folder, spec, bundle, context)
    try_here = load(STORIES[spec.kind].check)
    answer = try_here(folder, spec, bundle, context, lambda: ask_peers(folder, spec, context, trackers, packages))
    context.answer(answer.text, answer.data)
    if answer.asked.too_few:
        raise SystemExit(NobodyFits.exit_code)
