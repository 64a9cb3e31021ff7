"""A job's folder as the page sees it: read again and again, only what is new of its events."""

from __future__ import annotations

import contextlib
import math
import time

from axonp2p.client.hosted.hosted_mark import is_at_work
from axonp2p.client.storage.event_feed import EventTail
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.jobs.lifecycle import is_over
from client_cli.report.folding import fold
from client_cli.report.job_summary import View
from client_cli.report.kind_report import report_of
from client_cli.report.story import Story

ASK_AGAIN_S = 5.0
"""Whether another program works on the job is asked by its lock, and asking holds the lock for a moment."""

Trace = tuple[int, int, bool]
"""Changes when the folder says something else."""


class FolderView:
    """One job's folder. `ours`: this very program works on the job."""

    def __init__(self, folder: JobFolder, *, ours: bool) -> None:
        self._folder = folder
        self._ours = ours
        self._tail = EventTail(folder)
        self._story: Story | None = None
        self._held = True
        self._asked = -math.inf

    def look(self) -> View:
        """The folder now. Raises `NotFound` or `SettingsError`."""
        # The record first: an event that it does not know of yet is better than one that is missing.
        record = self._folder.read()
        self._story = fold(self._tail.fresh(), record.kind, self._story)
        at_work = not is_over(record.state) and self.is_held()
        return View(record, self._story, at_work, time.time(), str(self._folder.path))

    def look_at_all(self) -> View:
        """The same with what the folder has beside events, for a page or report of this job. Raises as `look`."""
        view = self.look()
        report_of(view.record.kind).look(view.story, self._folder.path)
        return view

    def forget(self) -> None:
        """Keep nothing of its events: the next look reads all of them."""
        self._tail, self._story = EventTail(self._folder), None

    def ask_again(self) -> None:
        """The next look asks whether somebody still works on the job, however short ago that was asked."""
        self._asked = -math.inf

    def trace(self) -> Trace:
        """Differs from an earlier one when there is something new to see."""
        sizes = []
        for file in (self._folder.events, self._folder.path / "job.json"):
            with contextlib.suppress(FileNotFoundError):
                found = file.stat()
                sizes.append(found.st_size + found.st_mtime_ns)
        return sum(sizes), len(sizes), self.is_held()

    def is_held(self) -> bool:
        """Whether some program works on the job, as it was asked last. Raises `SettingsError`."""
        if self._ours:
            return True
        if time.monotonic() - self._asked >= ASK_AGAIN_S:
            self._held, self._asked = is_at_work(self._folder), time.monotonic()
        return self._held
