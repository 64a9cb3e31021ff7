"""`axon init NAME`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("init", short_help="Write a job folder that works as it is.")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(["train", "run", "map"]),
    default="train",
    show_default=True,
    help="A training, or copies of one command.",
)
@options.common
def command(folder: Path, kind: str, home: Path | None, as_json: bool) -> None:
    """Write a job folder NAME that works as it is, to be changed into your own."""
    from axonp2p.plain_text import columns
    from client_cli.context import Context
    from client_cli.job_template import write_job

    context = Context.of(home, as_json)
    files = write_job(folder, kind)
    name = str(folder)
    table = columns(["file", "what"], [[f"  {file}", what] for file, what in files.items()]).partition("\n")[2]
    lines = [
        f"Wrote {name}:",
        table,
        "Next:",
        f"  {context.command('check', name)}",
        f"  {context.command('submit', name)}",
    ]
    context.answer("\n".join(lines), {"folder": name, "files": list(files)})
