"""`axon check` of a training: one step of its task here, in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.train.section import TrainJob
from client_cli.check_peers import CheckAnswer, PeersAsked
from client_cli.context import Context
from client_cli.train.alone import alone
from client_cli.train.check_text import Checked, as_data, as_text


def check(given: str, spec: TrainJob, bundle: Bundle, context: Context, ask: Callable[[], PeersAsked]) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    with tempfile.TemporaryDirectory(prefix="axon-check-") as folder:
        bundle.copy_to(Path(folder))
        with alone(Path(folder), ["--check"]) as checking:
            task = checking.answer()
    checked = Checked(spec, len(bundle.files), bundle.size, task, ask())
    return CheckAnswer(as_text(given, checked, context.command), as_data(checked), checked.asked)
