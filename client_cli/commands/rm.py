"""`axon rm JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("rm", short_help="Remove the folder of a job that is over.")
@click.argument("job", shell_complete=options.job_ids)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@options.common
def command(job: str, yes: bool, home: Path | None, as_json: bool) -> None:
    """Remove the folder of JOB from this computer: weights or results, states, logs and its report.

    Only a job that is over can be removed: it has finished, failed, was cancelled, or is paused, which cannot be
    resumed then. Files that were fetched stay, and so do its receipts in the ledger.
    """
    from axonp2p.plain_text import bytes_text
    from client_cli.context import Context, on_terminal

    context = Context.of(home, as_json)
    store = context.jobs()
    folder = store.find(job)
    record = store.removable(folder)
    size = sum(path.lstat().st_size for path in folder.path.rglob("*") if path.is_file() and not path.is_symlink())
    if not yes:
        if context.as_json or not on_terminal():
            raise click.UsageError(f"nobody can be asked here: axon rm {record.id} --yes")
        lost = ", and cannot be resumed then" if record.state == "paused" else ""
        click.confirm(f"Remove {record.id} ({record.state}, {bytes_text(size)}){lost}?", abort=True)
    store.remove(folder)
    context.answer(f"Removed {record.id}: {bytes_text(size)}.", {"removed": record.id, "bytes": size})
