"""`axon report JOB`, one job as a file, and `axon page`, all of them in the browser."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from client_cli import options

if TYPE_CHECKING:
    from axonp2p.loggers.values import LoggerChoice


@click.command("report", short_help="Write a job's report as one HTML file.")
@click.argument("job", shell_complete=options.job_ids)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file, instead of the job's folder.")
@options.overwrite
@options.loggers
@options.common
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
    options.keep_existing([out] if out else [], overwrite=overwrite)
    path = write_report(folder, context.command, out)
    lines, data = [f"report   {path}"], {"job": folder.path.name, "report": str(path)}
    for choice in loggers:
        data[choice.name] = logged(choice, folder.read(), folder.read_events())
        lines.append(f"for {choice.library.title}   {data[choice.name]}")
    context.answer("\n".join(lines), data)


@click.command("page", short_help="Show all jobs on one page in the browser.")
@click.option("--open", "in_browser", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The page's port on 127.0.0.1; 0 takes a free one.",
)
@options.common
def page(in_browser: bool, port: int, home: Path | None, as_json: bool) -> None:
    """Show all jobs of this computer on one page, and each of them on its own, until Ctrl-C.

    The page follows what happens. It shows, and changes nothing: jobs continue without it. With --json the address is
    printed as a JSON object.
    """
    from contextlib import suppress

    from client_cli.context import Context
    from client_cli.jobs_page.server import served_jobs

    context = Context.of(home, as_json)
    with suppress(KeyboardInterrupt), served_jobs(context.home, context.command, port) as address:
        opened = False
        if in_browser:
            import webbrowser

            opened = webbrowser.open(address)
        missing = "\nNo browser was found here; open it yourself." if in_browser and not opened else ""
        context.answer(f"page     {address}{missing}", {"address": address, "opened": opened})
        context.say("The page stays until Ctrl-C.")
        while True:
            time.sleep(3600)
