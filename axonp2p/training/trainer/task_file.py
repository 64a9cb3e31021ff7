"""The author's file, imported from the bundle, and its `class Task` made; its mistakes, told as its author sees them.

Any error that a task's code raises becomes `TaskMistake`: `message` is what was being done, `cause` the traceback, with
the author's files and lines and nothing of ours.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from axonp2p.errors import AxonError, TaskMistake

MOST_CHARACTERS = 15000


class TaskCode:
    """A block in which the task's code runs: `with TaskCode("loss()", folder): ...`, entered any number of times."""

    def __init__(self, doing: str, folder: Path) -> None:
        self._doing = doing
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, AxonError):
            return
        # SystemExit and KeyboardInterrupt too: a task that calls exit() must not look like a worker that died.
        if isinstance(error, Exception | SystemExit | KeyboardInterrupt):
            raise TaskMistake(self._doing, cause=told(error, self._folder)) from None


def told(error: BaseException, folder: Path) -> str:
    """The traceback of `error` with only the frames of files in `folder`, named relative to it."""
    summary = traceback.TracebackException.from_exception(error)
    _only_own(summary, folder)
    text = "".join(summary.format()).strip()
    if isinstance(error, SystemExit | KeyboardInterrupt):
        text += "\nA task must not end the program that runs it."
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS // 3]}\n[...]\n{text[-MOST_CHARACTERS // 2 :]}"
    return text


def _only_own(summary: traceback.TracebackException, folder: Path) -> None:
    own = [frame for frame in summary.stack if Path(frame.filename).is_relative_to(folder)]
    for frame in own:
        _ = frame.line  # read while the name still leads to the file
        frame.filename = _relative(frame.filename, folder)
    summary.stack[:] = own
    if isinstance(getattr(summary, "filename", None), str):  # of a SyntaxError
        summary.filename = _relative(summary.filename, folder)
    for inner in (summary.__cause__, summary.__context__, *(summary.exceptions or ())):
        if inner is not None:
            _only_own(inner, folder)


def _relative(name: str, folder: Path) -> str:
    path = Path(name)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


_NEEDED = {"model": "model(self)", "data": "data(self, split, shard, shards)"}


def load_task(folder: Path, file: str) -> Any:
    """The author's own object of `class Task`. Raises `TaskMistake`."""
    path = folder / file
    doing = f"loading {file}"
    # The bundle is read-only in the sandbox, and nobody wants a __pycache__ in their job's folder.
    sys.dont_write_bytecode = True
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("axon_task", path)
    if spec is None or spec.loader is None:
        raise mistake_in(doing, f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["axon_task"] = module  # dataclasses and pickle look their module up
    with TaskCode(doing, folder):
        spec.loader.exec_module(module)
    kind = getattr(module, "Task", None)
    if not isinstance(kind, type):
        raise mistake_in(doing, f"{file} has no class Task")
    for name, signature in _NEEDED.items():
        if not callable(getattr(kind, name, None)):
            raise mistake_in(doing, f"class Task has no method {signature}")
    if not callable(getattr(kind, "loss", None)) and not callable(getattr(kind, "step", None)):
        raise mistake_in(doing, "class Task has no method loss(self, model, batch)")
    with TaskCode("Task()", folder):
        return kind()


def mistake_in(doing: str, sentence: str) -> TaskMistake:
    """The error raised where a task's code gives what it must not."""
    return TaskMistake(doing, cause=f"{doing}: {sentence}.")
