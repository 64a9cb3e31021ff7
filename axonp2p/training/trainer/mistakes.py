"""A task's own mistakes, told as its author would see them: their files, their lines, nothing of ours.

Whatever a task's code raises becomes `TaskMistake`: `message` is what was being done, `cause` the traceback.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

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
