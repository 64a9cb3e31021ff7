"""`axon check` of a training: one step of its task here, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from axonp2p.errors import JobFileWrong
from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.train.best_round import LOSS, BestBy
from axonp2p.kinds.train.section import TrainJob
from client_cli.check_peers import CheckAnswer, PeersAsked
from client_cli.context import Context
from client_cli.train.alone import alone
from client_cli.train.check_text import Checked, as_data, as_text


def check(folder: Path, spec: TrainJob, bundle: Bundle, context: Context, ask: Callable[[], PeersAsked]) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    with alone(folder, ["--check"]) as checking:
        task = checking.answer()
    _check_best(spec, task["metrics"])
    checked = Checked(spec, len(bundle.files), bundle.size, task, ask())
    return CheckAnswer(as_text(str(folder), checked, context.command), as_data(checked), checked.asked)


def _check_best(spec: TrainJob, metrics: Collection[str]) -> None:
    """Raise `JobFileWrong` when no round could be the best."""
    by = BestBy.read(spec.train.best)
    if metrics and by.metric not in (*metrics, LOSS):
        given = ", ".join(sorted(metrics))
        raise JobFileWrong(
            f"job.toml: best: {spec.train.best}, and evaluate() gives {given}",
            fix=f'best = "{"max" if by.largest else "min"} {min(metrics)}"',
        )
