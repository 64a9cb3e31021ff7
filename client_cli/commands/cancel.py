"""`axon cancel JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli.options import common, job_ids
from client_cli.options import trackers as trackers_option


@click.command("cancel", short_help="Stop a job at once, for good.")
@click.argument("job", shell_complete=job_ids)
@trackers_option
@common
def command(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Stop JOB at once and for good: its peers are given back, and it cannot be resumed.

    It works from any terminal of this computer, on a job that runs and on one that was paused or interrupted;
    and on a job that a tracker carries on. What is kept of its rounds stays in its folder, for axon fetch JOB --round
    last; so do results of copies that came home. axon stop JOB ends a job with what it came to instead.
    """
    from axonp2p.client.no_result import is_over_for
    from axonp2p.client.storage.job_commands import JobCommand
    from axonp2p.jobs.lifecycle import JobState
    from client_cli.context import Context
    from client_cli.text.job_text import job_data
    from client_cli.watching.hosted import looked_at
    from client_cli.watching.other_program import change, stop

    context = Context.of(home, as_json)
    folder = looked_at(job, context, trackers, steers=True)
    record, _ = stop(folder, JobCommand.CANCEL, context, trackers)
    if record.state == JobState.FINISHED:
        raise is_over_for(record, "cancelled")
    if record.state != JobState.CANCELLED:
        record = change(folder, record, JobState.CANCELLED)
    text = f"Cancelled {record.id}."
    if record.kept:
        text += f"  What is kept of it stays in {folder.path} until you remove that."
    context.answer(text, job_data(record, at_work=False))
