"""`axon logs JOB`."""

from __future__ import annotations

from pathlib import Path

import click

from client_cli import options


@click.command("logs", short_help="Print what a job printed at its peers.")
@click.argument("job", shell_complete=options.job_ids)
@click.argument("peer", default="")
@click.option("--index", type=click.IntRange(min=0), help="Only of the peers at which that copy of a command ran.")
@click.option("-f", "--follow", is_flag=True, help="Go on as they grow, until the job is over.")
@options.trackers
@options.common
def command(
    job: str, peer: str, index: int | None, follow: bool, trackers: tuple[str, ...], home: Path | None, as_json: bool
) -> None:
    """Print what JOB printed at its peers, as far as it lies in the job's folder, here or at the tracker that has it.

    For a training it also names the files that the task wrote into /out at its peers.

    With PEER only what that one printed (the beginning of its name is enough). A peer's log holds all that the job
    printed there; with --index it is that of each peer at which that copy ran.
    """
    from contextlib import ExitStack

    from axonp2p.client.hosted.hosted_mark import is_at_work
    from axonp2p.errors import NotFound
    from axonp2p.jobs.lifecycle import is_over
    from axonp2p.kinds.run.record import RunRecord
    from client_cli.context import Context
    from client_cli.watching.hosted import following_host, looked_at
    from client_cli.watching.logs import log_texts, show_logs, show_task_files, task_files

    context = Context.of(home, as_json)
    with ExitStack() as stack:
        if follow and not as_json:
            folder, check = stack.enter_context(following_host(job, context, trackers))
        else:
            folder, check = looked_at(job, context, trackers), lambda: None
        record = folder.read()
        copies = isinstance(record, RunRecord)
        if index is not None and not copies:
            raise click.UsageError(f"{record.id} has no copies of a command: --index is for jobs that run them")
        if index is not None and index >= record.units:
            raise click.UsageError(f"{record.id} has {record.units} copies: the last one is {record.units - 1}")
        if as_json:
            files = {} if copies else {"files": task_files(folder)}
            context.answer("", {"job": record.id, "logs": log_texts(folder, index, peer), **files})
            return

        def over() -> bool:
            check()
            return is_over(folder.read().state) or not is_at_work(folder)

        printed = show_logs(folder, index, over if follow else None, peer=peer)
        if not copies and not peer and show_task_files(folder):
            return
        if not printed:
            what = record.id if index is None else f"copy {index} of {record.id}"
            if peer:
                names = " ".join(one.name for one in record.peers) or "none"
                raise NotFound(f"there is no log of {peer} in {what}", cause=f"its peers: {names}")
            raise NotFound(
                f"there is no log of {what} here",
                cause="its peers have printed nothing yet, or it has no peers",
                fix=context.command("status", record.id),
            )
