"""`axon report JOB`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli.options import common, job_ids, keep_existing
from client_cli.options import loggers as loggers_option
from client_cli.options import overwrite as overwrite_option

if TYPE_CHECKING:
    from axonp2p.loggers.values import LoggerChoice


@click.command("report", short_help="Write a job's report as one HTML file.")
@click.argument("job", shell_complete=job_ids)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file, instead of the job's folder.")
@overwrite_option
@loggers_option
@common
def command(
    job: str, out: Path | None, overwrite: bool, loggers: tuple[LoggerChoice, ...], home: Path | None, as_json: bool
) -> None:
    """Write the report of JOB: one file with all pictures and numbers, which opens without a network.

    A job that axon submit or axon resume worked on has one already; this writes it again.
    A file named with --out is not replaced without --overwrite.
    """
    from axonp2p.loggers.opening import logged
    from client_cli.context import Context
    from client_cli.report.files import write_report

    context = Context.of(home, as_json)
    folder = context.jobs().find(job)
    keep_existing([out] if out else [], overwrite=overwrite)
    path = write_report(folder, context.command, out)
    lines, data = [f"report   {path}"], {"job": folder.path.name, "report": str(path)}
    for choice in loggers:
        data[choice.name] = logged(choice, folder.read(), folder.read_events())
        lines.append(f"for {choice.library.title}   {data[choice.name]}")
    context.answer("\n".join(lines), data)
