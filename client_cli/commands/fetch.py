"""`axon fetch JOB -o OUT`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common


@click.command("fetch")
@click.argument("job")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for what JOB made."
)
@common
def command(job: str, out: Path, home: Path | None, as_json: bool) -> None:
    """Copy the weights, the metrics and every peer's log of a finished JOB into a folder."""
    from axonp2p.plain_text import columns
    from client_cli.context import Context
    from client_cli.render import bytes_text

    context = Context.of(home, as_json)
    with context.swarm() as swarm:
        found = swarm.job(job)
        folder = found.fetch(out)
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    table = columns(["file", "size"], [[name, bytes_text(size)] for name, size in files.items()], right=(1,))
    context.answer(f"{found.id} is in {folder}\n{table}", {"job": found.id, "out": str(folder), "files": files})
