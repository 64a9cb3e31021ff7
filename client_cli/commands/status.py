"""`axon status JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common


@click.command("status")
@click.argument("job")
@common
def command(job: str, home: Path | None, as_json: bool) -> None:
    """How far JOB is (the beginning of its id is enough)."""
    from client_cli.context import Context
    from client_cli.job_text import job_data, status_text

    context = Context.of(home, as_json)
    folder = context.jobs().find(job)
    seen = job_data(folder.read(), at_work=folder.is_held()) | {"kept_in": str(folder.path)}
    context.answer(status_text(seen, context.command), seen)
