"""Following a job to its end: its events on the screen, and what Ctrl-C means while it runs."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import msgspec

from axonp2p.client.events.events import Event, JobCancelled, JobFinished, JobPaused
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.console import INTERRUPTED_EXIT
from axonp2p.errors import AxonError, NobodyFits
from axonp2p.jobs.kinds import KINDS
from axonp2p.plain_text import plural
from client_cli.context import Context, on_terminal
from client_cli.interrupts import TERMINATED_EXIT, Terminated
from client_cli.report.beside import PageWishes, beside
from client_cli.text.kind_text import text_of
from client_cli.watching.progress import EventDisplay, JsonLines, progress_on

if TYPE_CHECKING:
    from axonp2p.client.job import Job


class EventQueue:
    """A job's events, read by a thread of their own.

    The main thread can then be interrupted between two events as often as people like, and none is lost.
    """

    def __init__(self, job: Job) -> None:
        self._events: queue.SimpleQueue[Event | AxonError | None] = queue.SimpleQueue()
        self.last: Event | None = None
        """The last one that happened, whether or not it was shown."""
        threading.Thread(target=self._read, args=[job], name="events", daemon=True).start()

    def __iter__(self) -> EventQueue:
        return self

    def __next__(self) -> Event:
        """The next one, until the job is over. Raises the job's error."""
        found = self._events.get()
        if found is None:
            raise StopIteration
        if isinstance(found, AxonError):
            raise found
        return found

    def _read(self, job: Job) -> None:
        try:
            for event in job.events():
                self.last = event
                self._events.put(event)
            self._events.put(None)
        except AxonError as error:
            self._events.put(error)


def follow(job: Job, context: Context, wishes: PageWishes, *, json_events: bool = False) -> int:
    """Show `job` until it is over; gives the exit code. Raises the job's error, and why it finished with no success.

    `json_events`: each event is printed as a line of JSON, and how the job ended is the last of them.
    """
    try:
        return _follow(job, context, wishes, json_events)
    except AxonError as error:
        error.facts = {"job": job.id, "folder": str(job.folder)}
        raise


def _follow(job: Job, context: Context, wishes: PageWishes, json_events: bool) -> int:
    coming = EventQueue(job)
    # Nobody would be told the page's address where a program reads the answer.
    wishes = replace(wishes, page="" if context.as_json else wishes.page)
    kind = job.record.kind
    text = text_of(kind)
    display = JsonLines(sys.stdout) if json_events else progress_on(None if context.as_json else sys.stdout, kind)
    answer: Callable[[str, dict[str, Any]], None] = (lambda text, data: None) if json_events else context.answer
    with (
        display as progress,
        beside(JobFolder(job.folder), wishes, context.command, progress.say) as hear,
    ):
        code = _until_over(job, coming, progress, hear, may_ask=on_terminal() and not context.as_json)
    match coming.last:
        case JobFinished() as event:
            told = JobFolder(job.folder).read_events()
            lines = [text.end.summary(event, told), "Next:", f"  {context.command('fetch', job.id, '-o', 'OUT')}"]
            answer("\n".join(lines), _data(text.end.data(event, told), "finished"))
            if failure := text.end.failure(event, told, context.command):
                raise failure
            return 0
        case JobPaused() as event:
            why = f"{event.reason}\nToo few peers are left. " if event.reason else ""
            kept = f"{why}Paused {job.id} after {plural(event.round, text.words.unit)}."
            data = _data(msgspec.to_builtins(event), "paused")
            end_it = ""
            if KINDS[kind].finish and event.round:
                end_it = f"\nEnd it with its {text.words.result} so far: {context.command('stop', job.id)}"
            answer(f"{kept}  Continue it: {context.command('resume', job.id)}{end_it}", data)
            if event.reason:
                return NobodyFits.exit_code
        case JobCancelled() as event:
            answer(f"Cancelled {job.id}.", _data(msgspec.to_builtins(event), "cancelled"))
    return code


def _until_over(
    job: Job, coming: EventQueue, progress: EventDisplay, hear: Callable[[Event], None], *, may_ask: bool
) -> int:
    """Show all events; gives the exit code for a job that was not allowed to finish."""
    code = INTERRUPTED_EXIT
    while True:
        try:
            for event in coming:
                progress.show(event)
                hear(event)
            return code
        except KeyboardInterrupt:
            with progress.paused():
                wish = _ask(job) if may_ask else "leave"
        except Terminated:
            wish, code = "leave", TERMINATED_EXIT
        match wish:
            case "leave":
                job.leave()
            case "stop":
                job.stop()
            case "cancel":
                job.cancel()


def _ask(job: Job) -> str:
    """Ask what Ctrl-C on a terminal was meant to say; the job goes on meanwhile."""
    kind = job.record.kind
    words, ways = text_of(kind).words, ways_of(kind)
    stop = f"stop it {words.pausing}, with its {words.result}; " if "stop" in ways else ""
    question = (
        f"\n{job.id} is still at work. Leave it, to be resumed; {stop}cancel it; or carry on? ({', '.join(ways)})"
    )
    try:
        answer: str = click.prompt(question, value_proc=lambda text: wish_of(text, ways), default="leave")
    except (click.Abort, Terminated):
        return "leave"
    return answer


def ways_of(kind: str) -> tuple[str, ...]:
    """The answers that this question takes for a job of that kind: only some kinds can be ended early."""
    return ("leave", "stop", "cancel", "on") if KINDS[kind].finish else ("leave", "cancel", "on")


def wish_of(text: str, ways: Sequence[str]) -> str:
    """One of these words, or the beginning of one."""
    begun = text.strip().lower()
    for word in ways:
        if begun and word.startswith(begun):
            return word
    raise click.BadParameter(f"say {', '.join(ways[:-1])} or {ways[-1]}")


def _data(event: dict[str, Any], state: str) -> dict[str, Any]:
    return {"state": state} | {name: fact for name, fact in event.items() if name != "event"}
