"""`axon demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from axonp2p.command_group import json_and_debug

OUT = Path("demo-out")


@click.command("demo", short_help="A whole swarm on this computer trains on handwritten digits.")
@click.option("--peers", type=click.IntRange(2, 20), default=4, show_default=True, help="How many peers.")
@click.option("--kill-one", is_flag=True, help="Kill a peer midway (SIGKILL); the job goes on without it.")
@click.option("--keep", is_flag=True, help="Leave the swarm running and say how to stop it.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=OUT,
    show_default=True,
    help="Folder for weights, metrics and logs.",
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the state of all processes, kept afterwards (default: a temporary one that is removed).",
)
@json_and_debug
def command(peers: int, kill_one: bool, keep: bool, out: Path, home: Path | None, as_json: bool) -> int:
    """Train on handwritten digits with a whole swarm on this computer, and check what comes out.

    Starts a tracker and peers as separate processes with sandboxes, trains, stops what it started, and leaves nothing
    but the folder of results. With --json all but the answer goes to stderr.
    """
    from axonp2p.errors import JobFailed
    from client_cli.context import Context, how_to_activate
    from client_cli.demo.demo import DEMO_KIND, DemoPlan, run_demo, state_folder
    from client_cli.demo.demo_report import as_data, as_text, next_commands, what_is_wrong
    from client_cli.job_template import digits_folder
    from client_cli.watching.progress import progress_on

    replaced = out.is_dir() and any(out.iterdir())
    plan = DemoPlan(folder=digits_folder(), peers=peers, kill_one=kill_one, keep=keep, out=out)
    with (
        state_folder(home, keep=keep) as state,
        progress_on(sys.stderr if as_json else sys.stdout, DEMO_KIND) as progress,
    ):
        context = Context.of(state, as_json)
        if replaced:
            progress.say(f"{out} has files already: those of the same names are replaced.")
        result = run_demo(plan, context, progress)
    text = f"{as_text(result)}\n{next_commands(keep, context.command, how_to_activate())}"
    context.answer(text, as_data(result))
    if wrong := what_is_wrong(result):
        raise JobFailed(f"the demo ran, but {wrong}", fix=f"what happened stands in {out}/events.jsonl")
    return 0
