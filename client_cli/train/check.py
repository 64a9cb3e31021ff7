"""`axon check` of a training: one step of its task here, in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from axonp2p.client.packages.unpacked_here import unpack_wheels
from axonp2p.jobs.bundle import Bundle
from axonp2p.kinds.train.section import TrainJob
from client_cli.check_peers import CheckAnswer, PeersAsked
from client_cli.context import Context
from client_cli.train.alone import alone
from client_cli.train.check_text import Checked, as_data, as_text


def check(folder: Path, spec: TrainJob, bundle: Bundle, context: Context, ask: Callable[[], PeersAsked]) -> CheckAnswer:
    """As `check_peers.TryHere` has it."""
    with tempfile.TemporaryDirectory(prefix="axon-check-") as scratch:
        packages = unpack_wheels(bundle, Path(scratch))
        with alone(folder, ["--check"], packages) as checking:
            task = checking.answer()
    checked = Checked(spec, len(bundle.files), bundle.size, task, ask())
    return CheckAnswer(as_text(str(folder), checked, context.command), as_data(checked), checked.asked)
