"""A job's task in one plain process of its own (`axonp2p.training.alone`), so that this one never loads torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from axonp2p.errors import JobFailed, TaskMistake, error_classes
from client_cli.child_errors import last_lines
from client_cli.interrupts import die_with_parent, no_interruption

MODULE = "axonp2p.training.alone"


class Alone:
    """One such process; `with` it, and it is never left behind."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        # torch leaves caches in the folder for temporary files, so it gets one that goes with it.
        self._scratch = tempfile.TemporaryDirectory(prefix="axon-alone-")
        with no_interruption():
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, str(folder), *arguments, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "TMPDIR": self._scratch.name},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._scratch.cleanup()

    def answer(self) -> dict[str, Any]:
        """What it found. Raises `TaskMistake` with the user's own traceback, or the error that it ended with."""
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
        raise TaskMistake(f"the task made a mistake in {error['doing']}", cause=error["traceback"], fix="mend task.py")
    kind = error_classes().get(error["code"], JobFailed)
    raise kind(error["message"], fix=error["fix"])
