"""`axon check DIR`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli.options import common
from client_cli.options import overrides as overrides_option
from client_cli.options import trackers as trackers_option

if TYPE_CHECKING:
    from axonp2p.jobs.overrides import Override


@click.command("check")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@overrides_option
@trackers_option
@common
def command(
    folder: Path, overrides: Sequence[Override], trackers: tuple[str, ...], home: Path | None, as_json: bool
) -> None:
    """Look for mistakes in the job in FOLDER before anything is sent.

    Reads job.toml and the files that it names, and asks the trackers, where they can be reached, how many peers would
    take the job. Of a training it takes one step here in a process of its own; where job.toml has checks, it takes some
    steps twice: does what is done again lead to the same end? Of copies of a command it runs the first one here for
    some seconds, in the sandbox in which peers run it.

    Exit code 8: there is no mistake, but fewer peers would take the job now than it needs to begin.
    """
    from axonp2p.client.job_draft import drafted
    from axonp2p.errors import NobodyFits
    from axonp2p.jobs.kinds import load
    from client_cli.check_peers import ask_peers
    from client_cli.context import Context
    from client_cli.kinds import STORIES

    context = Context.of(home, as_json)
    with drafted(folder, overrides) as draft:
        spec, given = draft.spec, " ".join([str(folder), *(one.said for one in overrides)])
        try_here = load(STORIES[spec.kind].check)
        answer = try_here(given, spec, draft.bundle, context, lambda: ask_peers(spec, context, trackers))
    context.answer(answer.text, answer.data)
    if answer.asked.too_few:
        raise SystemExit(NobodyFits.exit_code)
