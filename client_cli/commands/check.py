"""`axon check DIR`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli import options

if TYPE_CHECKING:
    from axonp2p.jobs.overrides import Override


@click.command("check", short_help="Try the job in FOLDER here, before anything is sent.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@options.overrides
@options.trackers
@options.common
def command(
    folder: Path, overrides: Sequence[Override], trackers: tuple[str, ...], home: Path | None, as_json: bool
) -> None:
    """Look for mistakes in the job in FOLDER before anything is sent.

    Copies the files that would be sent into a fresh folder, and tries the job there in the sandbox in which peers run
    it: without a network, with a read-only bundle, with the cores and the memory of job.toml. Of a training it takes
    the first steps as a peer takes them, some of them twice where job.toml has checks, evaluates, and loads the
    model's file. Of copies of a command it runs the first one for some seconds. Then it asks the trackers, where they
    can be reached, how many peers would take the job now, and why the others would not. Packages that the job brings
    along are resolved first.

    Each step that takes longer than five seconds is named.

    Exit code 8: there is no mistake, but fewer peers would take the job now than it needs to begin.
    """
    from axonp2p.client.job_draft import drafted
    from axonp2p.errors import NobodyFits
    from axonp2p.jobs.kinds import load
    from client_cli.check_peers import JobHere, PeersAsked, ask_peers, with_packages
    from client_cli.context import Context
    from client_cli.kinds import STORIES
    from client_cli.meanwhile import Meanwhile

    context = Context.of(home, as_json)
    with Meanwhile(context.say) as meanwhile:
        meanwhile.begin("reading the files of the bundle")
        with drafted(folder, overrides) as draft:
            spec, bundle, packages = draft.spec, draft.bundle, ""
            if spec.packages.wanted:
                meanwhile.begin("bringing the packages here (pip)")
                bundle, packages = with_packages(folder, spec, bundle, context.home)

            def ask() -> PeersAsked:
                meanwhile.begin("asking the trackers who would take the job")
                return ask_peers(folder, spec, context, trackers, packages)

            given = " ".join([str(folder), *(one.said for one in overrides)])
            try_here = load(STORIES[spec.kind].check)
            answer = try_here(JobHere(given, spec, bundle, context, meanwhile, ask))
    context.answer(answer.text, answer.data)
    if answer.asked.too_few:
        raise SystemExit(NobodyFits.exit_code)
