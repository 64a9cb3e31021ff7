"""A job's task in a plain process of its own (`training.worker.alone`), so that this one never loads torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from axonp2p.errors import JobFailed, TaskMistake, error_classes
from axonp2p.jobs.task_fixes import task_fix
from axonp2p.missing_modules import not_installed
from client_cli.child_errors import last_lines
from client_cli.interrupts import die_with_parent, no_interruption

MODULE = "axonp2p.kinds.train.local.alone"


@contextmanager
def alone(folder: Path, arguments: Sequence[str], module: str = MODULE) -> Iterator[Alone]:
    """One such process, never left behind: the block may end, or be interrupted, at any moment.

    Raises `NotInstalled` without torch.
    """
    if find_spec("torch") is None:
        raise not_installed(["torch"], "a task on this computer")
    scratch, process = None, None
    try:
        with no_interruption():
            # torch leaves caches in the folder for temporary files, so it gets one that goes with it.
            scratch = tempfile.mkdtemp(prefix="axon-alone-")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(folder), *arguments, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # As in the sandbox, which has no compiler: what a task compiles runs as it is.
                env={**os.environ, "TMPDIR": scratch, "TORCH_COMPILE_DISABLE": "1"},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        yield Alone(process)
    finally:
        with no_interruption():
            if process is not None:
                process.kill()
                process.communicate()
            if scratch is not None:
                shutil.rmtree(scratch)


class Alone:
    """The process of a task while it runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def answer(self) -> dict[str, Any]:
        """The process's answer. Raises `TaskMistake` with the user's own traceback, or the error that it ended with."""
        out, errors = self._process.communicate()
        return read_answer(out.decode(errors="replace"), errors.decode(errors="replace"))


def read_answer(out: str, errors: str) -> dict[str, Any]:
    """The answer in what the process wrote: the last line of its output, after what the task itself printed. Pure."""
    try:
        found = json.loads(out.rstrip().rpartition("\n")[2])
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        cause, fix = last_lines(errors), "look for exit() in task.py, and for what takes all memory"
        raise JobFailed("the task ended its process without an answer", cause=cause, fix=fix)
    error = found.get("error")
    if error is None:
        return found
    if "traceback" in error:
        mistake, cause = f"the task made a mistake in {error['doing']}", error["traceback"]
        raise TaskMistake(mistake, cause=cause, fix=task_fix(cause))
    kind = error_classes().get(error["code"], JobFailed)
    raise kind(error["message"], fix=error["fix"])
