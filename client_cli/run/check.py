"""`axon check` of a job that runs copies of a command: its files, its peers, and its first copy tried here."""

from __future__ import annotations

from collections.abc import Callable

from axonp2p.errors import JobFailed, Unreachable
from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.run.copy_ends import code_text
from axonp2p.kinds.run.section import RunJob
from axonp2p.plain_text import bytes_text, plural
from client_cli.check_peers import CheckAnswer, PeersAsked, common_data, in_order, peers_text
from client_cli.context import Context
from client_cli.run.trial import Trial, try_first_copy
from client_cli.text.render import duration_text

LOG_SHOWN = 1000
"""Characters of what it printed."""


def check(given: str, spec: RunJob, bundle: Bundle, context: Context, ask: Callable[[], PeersAsked]) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    context.say("runs the first copy here, in the sandbox ...")
    try:
        trial = try_first_copy(spec, bundle, context.say)
    except (Unreachable, TimeoutError) as error:
        raise JobFailed("the sandbox ended while the command ran in it", cause=str(error)) from error
    if trial.code or trial.reason:
        why = trial.reason or code_text(trial.code or 0)
        raise JobFailed(
            f"copy 0 of the command failed here: {why}",
            cause=trial.log[-LOG_SHOWN:].strip(),
            fix=f"mend {' and '.join(file.path for file in bundle.files[1:2]) or 'the command'} in {given}",
        )
    asked = ask()
    return CheckAnswer(_text(given, spec, bundle, context, trial, asked), _data(spec, bundle, trial, asked), asked)


def trial_text(trial: Trial) -> str:
    """How the first copy went here."""
    if trial.not_tried:
        return f"the command was not tried: {trial.not_tried}"
    if trial.code is None:
        return f"copy 0 still ran here after {duration_text(trial.seconds)}, and was ended"
    printed = f", and printed {plural(len(trial.log.splitlines()), 'line')}"
    return f"copy 0 ended here with {code_text(trial.code)} after {duration_text(trial.seconds)}{printed}"


def _text(given: str, spec: RunJob, bundle: Bundle, context: Context, trial: Trial, asked: PeersAsked) -> str:
    facts = {
        "command": spec.run.command,
        "copies": f"{spec.run.copies:,}{', all at once' if spec.run.together else ''}",
        "bundle": f"{plural(len(bundle.files), 'file')}, {bytes_text(bundle.size)}",
        "tried": trial_text(trial),
        "peers": peers_text(spec.need, asked),
    }
    return in_order(given, facts, asked, context.command)


def _data(spec: RunJob, bundle: Bundle, trial: Trial, asked: PeersAsked) -> dict[str, object]:
    return {
        **common_data(spec, len(bundle.files), bundle.size, asked),
        "command": spec.run.command,
        "copies": spec.run.copies,
        "tried": not trial.not_tried,
        "not_tried": trial.not_tried,
        "code": trial.code,
        "seconds": trial.seconds,
        "log": trial.log,
    }
