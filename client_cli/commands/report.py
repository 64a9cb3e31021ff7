"""`axon report JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common
from client_cli.options import tensorboard as tensorboard_option


@click.command("report")
@click.argument("job")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file, instead of the job's folder.")
@tensorboard_option
@common
def command(job: str, out: Path | None, tensorboard: Path | None, home: Path | None, as_json: bool) -> None:
    """Write the report of JOB: one file with all pictures and numbers, which opens without a network.

    A job that axon submit or axon resume worked on has one already; this writes it again.
    """
    from client_cli.context import Context
    from client_cli.report.files import write_report
    from client_cli.report.tensorboard import TensorBoardFiles

    context = Context.of(home, as_json)
    folder = context.jobs().find(job)
    path = write_report(folder, context.command, out)
    lines, data = [f"report   {path}"], {"job": folder.path.name, "report": str(path)}
    if tensorboard:
        run = TensorBoardFiles.write(tensorboard, folder.path.name, folder.read_events())
        lines.append(f"for TensorBoard   {run}")
        data["tensorboard"] = str(run)
    context.answer("\n".join(lines), data)
