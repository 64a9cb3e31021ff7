"""`axon fetch JOB -o OUT`, and `axon export JOB -o OUT`: what a job came to, as it is and in other forms."""

from __future__ import annotations

import re
from pathlib import Path

import click

from client_cli import options


def _round(_: click.Context, __: click.Parameter, said: str | None) -> str | None:
    if said is None or said in ("last", "best") or re.fullmatch(r"[1-9][0-9]{0,8}", said):
        return said
    raise click.BadParameter("say a number from 1 on, last or best")


round_option = click.option(
    "--round",
    "which",
    metavar="N|best|last",
    callback=_round,
    help="Of a training: the weights after this round, of those that are kept, in whatever state JOB is.",
)


@click.command("fetch", short_help="Copy what a job made, and its logs, into a folder.")
@click.argument("job", shell_complete=options.job_ids)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for what JOB made."
)
@round_option
@options.overwrite
@options.trackers
@options.common
def command(
    job: str,
    out: Path,
    which: str | None,
    overwrite: bool,
    trackers: tuple[str, ...],
    home: Path | None,
    as_json: bool,
) -> None:
    """Copy what a finished JOB made, and every peer's log, into a folder.

    Of a training these are weights and metrics; of copies of a command their files and results.csv.

    With --round they are the weights after an earlier round, or those of a JOB that has not finished: one that runs,
    is paused, failed or was cancelled. best is the best of the rounds whose states are kept, by best in job.toml; last
    is the newest.

    A file that is there already is not replaced without --overwrite.

    Those of a job that a tracker carried on come from there, on any computer with the same key.
    """
    from axonp2p.plain_text import bytes_text, columns
    from client_cli.context import Context
    from client_cli.watching.hosted import looked_at

    context = Context.of(home, as_json)
    name = looked_at(job, context, trackers, result=True).path.name
    with context.swarm(trackers) as swarm:
        found = swarm.job(name)
        options.keep_existing(found.files_in(out), overwrite=overwrite)
        folder = found.fetch(out, round=which)
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    table = columns(["file", "size"], [[name, bytes_text(size)] for name, size in files.items()], right=(1,))
    context.answer(f"{found.id} is in {folder}\n{table}", {"job": found.id, "out": str(folder), "files": files})


@click.command("export", short_help="Write a job's weights for torch.load or from_pretrained.")
@click.argument("source", metavar="JOB|FILE")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The file, or the folder, to write.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["torch", "safetensors", "pretrained"]),
    default="torch",
    show_default=True,
    help="A state dict for torch.load, a safetensors file, or a folder for from_pretrained.",
)
@round_option
@options.overwrite
@options.trackers
@options.common
def export(
    source: str,
    out: Path,
    form: str,
    which: str | None,
    overwrite: bool,
    trackers: tuple[str, ...],
    home: Path | None,
    as_json: bool,
) -> None:
    """Write the weights of JOB, or of a safetensors FILE, in a form that other programs read.

    torch: a state dict of plain tensors, for torch.load(OUT, weights_only=True). pretrained: OUT is a folder that the
    model's own save_pretrained writes; the task of JOB makes the model, in a process of its own. A file that is there
    already is not replaced without --overwrite.
    """
    from client_cli.context import Context
    from client_cli.train.export import export_plain, export_pretrained, weights_of
    from client_cli.watching.hosted import looked_at

    context = Context.of(home, as_json)
    options.keep_existing([out], overwrite=overwrite)
    if Path(source).is_file():
        if form == "pretrained" or which:
            raise click.UsageError("--round and --format pretrained go with a JOB, which has the task")
        export_plain(Path(source), out, form)
        context.answer(f"{source} is in {out}", {"file": source, "out": str(out), "format": form})
        return
    name = looked_at(job=source, context=context, trackers=trackers, result=True).path.name
    module = ""
    with context.swarm(trackers) as swarm, weights_of(swarm.job(name), which) as weights:
        if form == "pretrained":
            module = export_pretrained(context.jobs().find(name), weights, out)
        else:
            export_plain(weights, out, form)
    part = f" (its module {module} alone: the model itself has no save_pretrained)" if module else ""
    context.answer(f"{name} is in {out}{part}", {"job": name, "out": str(out), "format": form, "module": module})
