"""`axon check` of a training: its task tried here as a peer would run it, and who would take it."""

from __future__ import annotations

from collections.abc import Collection

from axonp2p.errors import JobFileWrong
from axonp2p.kinds.train.kept.best_round import LOSS, BestBy
from axonp2p.kinds.train.section import TrainJob
from client_cli.check_peers import CheckAnswer, JobHere, gpu_text
from client_cli.train.check_text import Checked, as_data, as_text
from client_cli.train.trial import try_task


def check(job: JobHere) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    # A task may fail here for want of a GPU; that nobody lends one is worth knowing then, too.
    asked = job.ask() if job.spec.need.wants_gpu else None
    if asked and (warning := gpu_text(job.spec.need, asked)):
        job.context.say(warning)
    trial = try_task(job.spec, job.bundle, job.meanwhile, job.context.say)
    if trial.found:
        _check_best(job.spec, trial.found.metrics)
    checked = Checked(job.spec, len(job.bundle.files), job.bundle.size, trial, asked or job.ask())
    return CheckAnswer(as_text(job.given, checked, job.context.command), as_data(checked), checked.asked)


def _check_best(spec: TrainJob, metrics: Collection[str]) -> None:
    """Raise `JobFileWrong` when no round could be the best."""
    by = BestBy.read(spec.train.best)
    if metrics and by.metric not in (*metrics, LOSS):
        given = ", ".join(sorted(metrics))
        raise JobFileWrong(
            f"job.toml: best: {spec.train.best}, and evaluate() gives {given}",
            fix=f'best = "{"max" if by.largest else "min"} {min(metrics)}"',
        )
