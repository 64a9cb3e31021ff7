"""Watching a job from another terminal: what its folder tells, as it is written there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from axonp2p.client.events.events import JobFinished, as_line
from axonp2p.client.storage.event_tail import EventTail
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import JobFailed
from axonp2p.jobs.lifecycle import JobState
from client_cli.context import Context
from client_cli.report.folder_view import FolderView
from client_cli.report.folding import end_line
from client_cli.report.serving import served
from client_cli.report.standing import View, standing
from client_cli.text.event_text import summary
from client_cli.watching.progress import progress_on

LOOK_S = 0.3


def watch(
    folder: JobFolder, context: Context, *, page: str, in_browser: bool, check: Callable[[], None] = lambda: None
) -> int:
    """Show the job until it is over; gives the exit code. Its page stays longer, until Ctrl-C, where one can be typed.

    With JSON each event is a line. `check` is called again and again, and raises when the folder is followed no more.
    """
    view, tail = FolderView(folder, ours=False), EventTail(folder)
    with progress_on(None if context.as_json else sys.stdout) as progress, ExitStack() as stack:
        if page and not context.as_json:
            address = stack.enter_context(served(folder, context.command, page, ours=False))
            progress.say(f"page     {address}")
            if in_browser:
                _open(address)
        while True:
            check()
            seen = view.look()
            for event in tail.fresh():
                if context.as_json:
                    print(as_line(event).decode(), flush=True)
                elif isinstance(event, JobFinished):
                    progress.say(summary(event))
                else:
                    progress.show(event)
                    if ended := end_line(event):
                        progress.say(ended)
            if seen.over:
                break
            time.sleep(LOOK_S)
        if not context.as_json:
            progress.say(_told(seen, context))
            if page and sys.stdout.isatty():
                progress.say("The page stays until Ctrl-C.")
                _stay()
    return JobFailed.exit_code if seen.record.state is JobState.FAILED else 0


def _told(seen: View, context: Context) -> str:
    stands = standing(seen, context.command)
    fixes = [f"  {banner.fix}      {banner.or_else}".rstrip() for banner in stands.banners if banner.fix]
    return "\n".join([f"{seen.record.id} {stands.word}: {stands.sentence}", *fixes])


def _stay() -> None:
    while True:
        time.sleep(3600)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
