"""Watching a job from another terminal: what its folder tells, as it is written there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.event_feed import EventTail
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from client_cli.context import Context
from client_cli.report.folder_view import FolderView
from client_cli.report.job_summary import View, summary_of
from client_cli.report.server import served
from client_cli.text.event_text import end_line
from client_cli.text.kind_text import text_of
from client_cli.watching.progress import JsonLines, progress_on

LOOK_S = 0.3
LAST_EVENT_S = 3.0


def watch(
    folder: JobFolder, context: Context, *, page: str, in_browser: bool, check: Callable[[], None] = lambda: None
) -> int:
    """Show the job until it is over; gives the exit code. Raises why it finished with no success.

    Its page stays longer, until Ctrl-C, where one can be typed.

    With JSON each event is a line. `check` is called again and again, and raises when the folder is followed no more.
    """
    view, tail = FolderView(folder, ours=False), EventTail(folder)
    kind = folder.read().kind
    text, failure, told = text_of(kind), None, list[Event]()
    display = JsonLines(sys.stdout) if context.as_json else progress_on(sys.stdout, kind)
    with display as progress, ExitStack() as stack:
        if page and not context.as_json:
            address = stack.enter_context(served(folder, context.command, page, ours=False))
            progress.say(f"page     {address}")
            if in_browser:
                _open(address)
        while True:
            check()
            seen = view.look()
            if seen.over:
                _wait_for_the_last_event(folder)
            for event in tail.fresh():
                told.append(event)
                if isinstance(event, JobFinished):
                    failure = text.end.failure(event, told, context.command)
                if context.as_json:
                    progress.show(event)
                elif isinstance(event, JobFinished):
                    progress.say(text.end.summary(event, told))
                else:
                    progress.show(event)
                    if ended := end_line(event, kind):
                        progress.say(ended)
            if seen.over:
                break
            time.sleep(LOOK_S)
        if not context.as_json:
            progress.say(_told(seen, context))
            if page and sys.stdout.isatty():
                progress.say("The page stays until Ctrl-C.")
                _stay()
    if failure:
        raise failure
    return JobFailed.exit_code if seen.record.state is JobState.FAILED else 0


def _wait_for_the_last_event(folder: JobFolder) -> None:
    """The program that works on the job writes down its state a moment before it tells the end."""
    until = time.monotonic() + LAST_EVENT_S
    while folder.is_held() and time.monotonic() < until:
        time.sleep(LOOK_S)


def _told(seen: View, context: Context) -> str:
    stands = summary_of(seen, context.command)
    fixes = [f"  {banner.fix}      {banner.or_else}".rstrip() for banner in stands.banners if banner.fix]
    return "\n".join([f"{seen.record.id} {stands.word}: {stands.sentence}", *fixes])


def _stay() -> None:
    while True:
        time.sleep(3600)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
