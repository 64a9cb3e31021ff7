"""`axon pause JOB`, to be resumed, `axon stop JOB`, which ends it with what it came to, and `axon cancel JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("pause", short_help="Stop a job after this round or these copies, to be resumed.")
@click.argument("job", shell_complete=options.job_ids)
@click.option("--now", is_flag=True, help="Do not wait for the end of the round, or of the copies, that run.")
@options.trackers
@options.common
def command(job: str, now: bool, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Stop JOB after the round that runs, or once its copies that run are over; axon resume continues it.

    All that is done is kept, and its peers are given back. It works from any terminal of this computer; the program
    that ran the job ends. A job that a tracker carries on is paused there.
    """
    from axonp2p.client.hosted.hosted_mark import is_at_work
    from axonp2p.client.no_result import is_over_for
    from axonp2p.client.storage.job_commands import JobCommand
    from axonp2p.jobs.lifecycle import JobState
    from axonp2p.plain_text import plural
    from client_cli.context import Context
    from client_cli.text.job_text import job_data
    from client_cli.text.kind_text import text_of
    from client_cli.watching.hosted import looked_at
    from client_cli.watching.stopping import stop as stop_working

    context = Context.of(home, as_json)
    folder = looked_at(job, context, trackers, steers=True)
    words = text_of(folder.read().kind).words
    if is_at_work(folder):
        context.say(f"{folder.path.name} stops {'now' if now else words.pausing} ...")
    record, worked = stop_working(folder, JobCommand.LEAVE if now else JobCommand.PAUSE, context, trackers)
    if record.state is not JobState.PAUSED and not worked:
        raise is_over_for(record, "paused")
    kept = plural(record.kept, words.unit)
    text = f"Paused {record.id} after {kept}." if worked else f"{record.id} is paused; {kept} kept."
    text += f"  Continue it: {context.command('resume', record.id)}"
    if record.state is not JobState.PAUSED:
        text = f"{record.id} is {record.state}: it came to its end first."
    context.answer(text, job_data(record, at_work=False))


@click.command("stop", short_help="End a job early and keep what it came to.")
@click.argument("job", shell_complete=options.job_ids)
@options.trackers
@options.common
def stop(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """End JOB early, with what it came to: the weights after the round that runs, or the copies that are done.

    The round that runs, or the copies that do, are waited for; then the job has finished as after all of them. A job
    that no program works on (paused, failed, interrupted) is ended with the newest that is kept of it, without peers.
    It works from any terminal of this computer, and on a job that a tracker carries on.
    """
    from client_cli.context import Context
    from client_cli.watching.hosted import looked_at
    from client_cli.watching.stopping import finish_job

    context = Context.of(home, as_json)
    finish_job(looked_at(job, context, trackers, steers=True), context, trackers)


@click.command("cancel", short_help="Stop a job at once, for good.")
@click.argument("job", shell_complete=options.job_ids)
@options.trackers
@options.common
def cancel(job: str, trackers: tuple[str, ...], home: Path | None, as_json: bool) -> None:
    """Stop JOB at once and for good: its peers are given back, and it cannot be resumed.

    It works from any terminal of this computer, on a job that runs and on one that was paused or interrupted;
    and on a job that a tracker carries on. Rounds that were kept stay in its folder, for axon fetch JOB --round last;
    so do results of copies that came home. axon stop JOB ends a job with what it came to instead.
    """
    from axonp2p.client.no_result import is_over_for
    from axonp2p.client.storage.job_commands import JobCommand
    from axonp2p.jobs.lifecycle import JobState
    from client_cli.context import Context
    from client_cli.text.job_text import job_data
    from client_cli.watching.hosted import looked_at
    from client_cli.watching.stopping import change, stop

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
