"""What goes on beside a job that this program works on: its page, TensorBoard's files, and the report at its end.

None of it may harm the job: what cannot be had is said in a line, and the job goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from axonp2p.client.events.events import Event
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError
from client_cli.report.files import write_report
from client_cli.report.server import served
from client_cli.report.tensorboard import TensorBoardFiles
from client_cli.text.kind_text import Command


@dataclass(frozen=True)
class PageWishes:
    """`page`: HOST:PORT, or empty for none; `tensorboard`: the folder for its files."""

    page: str = ""
    tensorboard: Path | None = None


@contextmanager
def beside(
    folder: JobFolder, wishes: PageWishes, command: Command, say: Callable[[str], None]
) -> Iterator[Callable[[Event], None]]:
    """While inside, the page is there. Give the events to what this gives; at the end the report is written."""
    with ExitStack() as stack:
        if wishes.page:
            try:
                say(f"page     {stack.enter_context(served(folder, command, wishes.page, ours=True))}")
            except AxonError as error:
                say(f"warning: no page: {error.in_a_line}")
        hearing = _Hearing(wishes, folder.path.name, say)
        try:
            yield hearing.hear
        finally:
            try:
                say(f"report   {write_report(folder, command, ours=True)}")
            except AxonError as error:
                say(f"warning: no report: {error.in_a_line}")
            except Exception as error:  # a mistake of ours here must not hide how the job ended
                say(f"warning: no report: a mistake in axon itself: {error!r}")


class _Hearing:
    """Writes TensorBoard's files until that fails."""

    def __init__(self, wishes: PageWishes, job: str, say: Callable[[str], None]) -> None:
        self._files = TensorBoardFiles(wishes.tensorboard, job) if wishes.tensorboard else None
        self._say = say

    def hear(self, event: Event) -> None:
        if self._files is None:
            return
        try:
            self._files.add(event)
        except AxonError as error:
            self._files = None
            self._say(f"warning: nothing more for TensorBoard: {error.in_a_line}")
