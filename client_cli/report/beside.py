"""The services beside a job that this program works on: its page, loggers, and the report at its end.

None of them may harm the job: where one cannot be had, a line says so, and the job goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from axonp2p.client.events.events import Event
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError
from axonp2p.loggers.opening import EventLogger, opened
from axonp2p.loggers.values import LoggerChoice
from client_cli.report.files import write_report
from client_cli.report.server import served
from client_cli.text.kind_text import Command


@dataclass(frozen=True)
class PageWishes:
    """`page`: HOST:PORT, or empty for none; `loggers`: which of them are told of each round."""

    page: str = ""
    loggers: tuple[LoggerChoice, ...] = ()


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
        hearing = _Hearing(wishes.loggers, folder, say)
        try:
            yield hearing.hear
        finally:
            hearing.close()
            try:
                say(f"report   {write_report(folder, command, ours=True)}")
            except AxonError as error:
                say(f"warning: no report: {error.in_a_line}")
            except Exception as error:  # a mistake of ours here must not hide how the job ended
                say(f"warning: no report: a mistake in axon itself: {error!r}")


class _Hearing:
    """Tells each logger until it fails."""

    def __init__(self, choices: tuple[LoggerChoice, ...], folder: JobFolder, say: Callable[[str], None]) -> None:
        self._loggers: dict[str, EventLogger] = {}
        self._say = say
        for choice in choices:
            title = choice.library.title
            try:
                self._loggers[title] = opened(choice, folder.read())
                say(f"{title}   {self._loggers[title].where}")
            except AxonError as error:
                say(f"warning: nothing for {title}: {error.in_a_line}\nfix: {error.fix}")

    def hear(self, event: Event) -> None:
        for title, logger in list(self._loggers.items()):
            try:
                logger.add(event)
            except AxonError as error:
                del self._loggers[title]
                self._say(f"warning: nothing more for {title}: {error.in_a_line}")

    def close(self) -> None:
        for title, logger in self._loggers.items():
            try:
                logger.close()
            except AxonError as error:
                self._say(f"warning: {title}: {error.in_a_line}")
