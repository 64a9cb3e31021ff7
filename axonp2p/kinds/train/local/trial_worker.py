"""The program of a trial: `python -s -P -m axonp2p.kinds.train.local.trial_worker FD`, in a peer's sandbox.

With a second argument, the folder of the bundle, it is a plain process on a computer that cannot build the sandbox. Of
its limits it has one then: it writes nowhere but below its folder for temporary files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from axonp2p.errors import MalformedMessage, TaskMistake, Unreachable
from axonp2p.kinds.train.local.trial_messages import FromTrial, TrialDoing
from axonp2p.kinds.train.section import train_job
from axonp2p.sandbox.inside import Inside, serve_daemon
from axonp2p.sandbox.messages import BundleReady, Control, Start, Started
from axonp2p.sandbox.walls.landlock import write_only_below
from axonp2p.training.messages import TaskFailed
from axonp2p.training.worker.worker_main import BUNDLE, load
from axonp2p.wheels.import_path import use_wheels
from axonp2p.wire.frame import pack_frame


def main() -> None:
    """Try the task once."""
    if len(sys.argv) > 2:
        serve_plainly(Inside(int(sys.argv[1])), Path(sys.argv[2]))
    else:
        serve_daemon(lambda inside, start: serve(inside, start, BUNDLE), load)


def serve_plainly(inside: Inside, bundle: Path) -> None:
    """The same without a sandbox."""
    try:
        start, _ = inside.receive()
        if not isinstance(start, Start):
            raise MalformedMessage(f"{type(start).__name__} before Start")
        if sys.platform == "linux":
            write_only_below(tempfile.gettempdir())
        load(start.cores)
        serve(inside, start, bundle)
    except Unreachable:
        return


def serve(inside: Inside, start: Start, bundle: Path) -> None:
    """Try the task, and say what came of it. Raises what ended the channel, or `MalformedMessage`."""
    from axonp2p.kinds.train.local.trial import try_task
    from axonp2p.training.worker.out_folder import OutFolder
    from axonp2p.training.worker.redo_server import RedoServer
    from axonp2p.training.worker.warm_up import use_threads

    out = OutFolder(Path(tempfile.gettempdir()))
    out.make()
    server = RedoServer(start.cores, out, memory_mb=start.memory_mb) if sys.platform == "linux" else None
    use_threads(start.cores)
    inside.send(Started())
    message, _ = inside.receive()
    if not isinstance(message, BundleReady):
        raise MalformedMessage(f"{type(message).__name__} before the bundle")
    os.chdir(bundle)
    use_wheels(bundle)
    try:
        spec = train_job(bundle)
        _say(inside, try_task(bundle, spec, server if spec.train.checks else None, _Teller(inside)))
    except TaskMistake as mistake:
        _say(inside, TaskFailed(doing=mistake.message[:100], traceback=mistake.cause[:16000]))
    finally:
        if server:
            server.close()


class _Teller:
    """Says what is begun now, each thing once in a row."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._said = ""

    def __call__(self, what: str) -> None:
        if what != self._said:
            self._said = what
            _say(self._inside, TrialDoing(what=what[:200]))


def _say(inside: Inside, message: FromTrial) -> None:
    inside.send(Control(), pack_frame(message))


if __name__ == "__main__":
    main()
