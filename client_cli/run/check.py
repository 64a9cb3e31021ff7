"""`axon check` of a job that runs copies of a command: its files, its peers, and its first copy tried here."""

from __future__ import annotations

from axonp2p.errors import JobFailed, Unreachable
from axonp2p.kinds.run.copy_ends import code_text
from axonp2p.plain_text import bytes_text, plural
from client_cli.check_peers import CheckAnswer, JobHere, PeersAsked, common_data, common_facts, in_order
from client_cli.run.trial import Trial, try_first_copy
from client_cli.text.render import duration_text

LOG_SHOWN = 1000
"""Characters of what it printed."""


def check(job: JobHere) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    job.context.say("runs the first copy here, in the sandbox ...")
    try:
        trial = try_first_copy(job.spec, job.bundle, job.meanwhile)
    except (Unreachable, TimeoutError) as error:
        raise JobFailed("the sandbox ended while the command ran in it", cause=str(error)) from error
    if trial.code or trial.reason:
        why = trial.reason or code_text(trial.code or 0)
        raise JobFailed(
            f"copy 0 of the command failed here: {why}",
            cause=trial.log[-LOG_SHOWN:].strip(),
            fix=f"correct {' and '.join(file.path for file in job.bundle.files[1:2]) or 'the command'} in {job.given}",
        )
    asked = job.ask()
    return CheckAnswer(_text(job, trial, asked), _data(job, trial, asked), asked)


def trial_text(trial: Trial) -> str:
    """How the first copy went here."""
    if trial.not_tried:
        return f"the command was not tried: {trial.not_tried}"
    if trial.code is None:
        return f"copy 0 still ran here after {duration_text(trial.seconds)}, and was ended"
    printed = f", and printed {plural(len(trial.log.splitlines()), 'line')}"
    return f"copy 0 ended here with {code_text(trial.code)} after {duration_text(trial.seconds)}{printed}"


def _text(job: JobHere, trial: Trial, asked: PeersAsked) -> str:
    run, bundle = job.spec.run, job.bundle
    facts = {
        "command": run.command,
        "copies": f"{run.copies:,}{', all at once' if run.together else ''}",
        "bundle": f"{plural(len(bundle.files), 'file')}, {bytes_text(bundle.size)}",
        "tried": trial_text(trial),
        **common_facts(job.spec.need, asked),
    }
    return in_order(job.given, facts, asked, job.context.command, tried=not trial.not_tried)


def _data(job: JobHere, trial: Trial, asked: PeersAsked) -> dict[str, object]:
    return {
        **common_data(job.spec, len(job.bundle.files), job.bundle.size, asked, trial.not_tried),
        "command": job.spec.run.command,
        "copies": job.spec.run.copies,
        "code": trial.code,
        "seconds": trial.seconds,
        "log": trial.log,
    }
