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

    Reads job.toml and the files that it names, takes one step of the task here in a process of its own, and asks the
    trackers, where they can be reached, how many peers would take the job. Where job.toml has checks, it takes some
    steps twice: does what is done again lead to the same end?
    """
    from axonp2p.errors import AxonError
    from axonp2p.jobs.bundle import collect
    from axonp2p.jobs.spec import read_spec
    from client_cli.alone import alone
    from client_cli.context import Context
    from client_cli.text.check_text import Checked, as_data, as_text

    context = Context.of(home, as_json)
    spec = read_spec(folder)
    bundle = collect(folder, spec)
    with alone(folder, ["--check"]) as checking:
        task = checking.answer()
    found, trouble = None, ""
    try:
        with context.swarm(trackers) as swarm:
            found = len(swarm.peers(folder))
    except AxonError as error:
        trouble = error.message
    checked = Checked(spec, len(bundle.files), bundle.size, task, found, trouble)
    context.answer(as_text(str(folder), checked, context.command), as_data(checked))
