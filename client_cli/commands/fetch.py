"""`axon fetch JOB -o OUT`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import trackers as trackers_option


@click.command("fetch")
@click.argument("job")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for what JOB made."
)
@trackers_option
@common
def command(job: str, out: Path, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Copy what a finished JOB made, and every peer's log, into a folder.

    Of a training these are weights and metrics; of copies of a command their files and results.csv.

    Those of a job that a tracker carried on come from there, on any computer with the same key.
    """
    from axonp2p.plain_text import bytes_text, columns
    from client_cli.context import Context
    from client_cli.watching.hosted import looked_at

    context = Context.of(home, as_json)
    name = looked_at(job, context, trackers, result=True).path.name
    with context.swarm(trackers) as swarm:
        found = swarm.job(name)
        folder = found.fetch(out)
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    table = columns(["file", "size"], [[name, bytes_text(size)] for name, size in files.items()], right=(1,))
    context.answer(f"{found.id} is in {folder}\n{table}", {"job": found.id, "out": str(folder), "files": files})
