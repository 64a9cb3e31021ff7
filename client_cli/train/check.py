"""`axon check` of a training: its task tried here as a peer would run it, and who would take it."""

from __future__ import annotations

from client_cli.check_peers import CheckAnswer, JobHere, gpu_text
from client_cli.train.check_text import Checked, as_data, as_text
from client_cli.train.trial import try_task


def check(job: JobHere) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    # A task may fail here for want of a GPU; that nobody lends one is worth knowing then, too.
    asked = job.ask() if job.spec.need.gpu_memory else None
    if asked and (warning := gpu_text(job.spec.need, asked)):
        job.context.say(warning)
    trial = try_task(job.spec, job.bundle, job.meanwhile, job.context.say)
    checked = Checked(job.spec, len(job.bundle.files), job.bundle.size, trial, asked or job.ask())
    return CheckAnswer(as_text(str(job.folder), checked, job.context.command), as_data(checked), checked.asked)
