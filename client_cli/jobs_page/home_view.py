"""All job folders of a home as their page sees them: looked at again and again, only what changed is read."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError, NotFound, SettingsError
from axonp2p.jobs.lifecycle import JobState, is_over, seen_state
from client_cli.jobs_page.listed import (
    JobRow,
    ListedJobs,
    Standing,
    counts_text,
    in_order,
    on_page,
    page_number,
    pages_of,
    row_of,
    told_now,
    unreadable_row,
)
from client_cli.report.folder_view import FolderView
from client_cli.text.kind_text import Command
from client_cli.watching.hosted import hosted_data

_RECORDS = ("job.json", "job.json.bak")
_FILES = (*_RECORDS, "hosted.json", "events.jsonl")
_MARK, _EVENTS = 2, 3


class _FileStamp(NamedTuple):
    """Differs from an earlier one when the file was replaced, written to, or may be read by others."""

    inode: int = 0
    size: int = 0
    modified: int = 0
    changed: int = 0
    """Nanoseconds, as the one before."""


_Stamp = tuple[_FileStamp, ...]
_GONE = _FileStamp()
_NO_RECORD = (_GONE, _GONE)


@dataclass
class _Known:
    """The record of one job in memory: a small one, because a home may have thousands."""

    folder: JobFolder
    stamp: _Stamp
    standing: Standing
    written: JobState | None = None
    """The state in job.json; None: it cannot be read."""
    waits: bool = False
    view: FolderView | None = None
    """Of a job that is not over."""
    row: JobRow | None = None
    """Of one that says the same until its folder changes."""


class HomeView:
    """Any thread may look."""

    def __init__(self, home: Path, command: Command) -> None:
        self._jobs = home / "jobs"
        self._command = command
        self._known: dict[str, _Known] = {}
        self._changes = 0
        self._looking = threading.Lock()

    def trace(self) -> int:
        """Another number when there is something new to see."""
        with self._looking:
            self._look_around()
            return self._changes

    def look(self, asked: str = "") -> ListedJobs:
        """The page of the list that is `asked` for."""
        with self._looking:
            self._look_around()
            ordered = in_order(known.standing for known in self._known.values())
            page = page_number(asked, len(ordered))
            rows = [self._row(self._known[one.job]) for one in on_page(ordered, page)]
            ordered = [self._known[one.job].standing for one in ordered]  # events are read only now: some cannot be
            return ListedJobs(
                rows=[row for row in rows if row],
                page=page,
                pages=pages_of(len(ordered)),
                total=len(ordered),
                at_work=sum(one.at_work for one in ordered),
                said=counts_text(ordered),
                now=time.time(),
            )

    def _look_around(self) -> None:
        there = self._stamps()
        for job in self._known.keys() - there.keys():
            del self._known[job]
            self._changes += 1
        for job, stamp in there.items():
            known = self._known.get(job)
            if known is None or known.stamp != stamp:
                self._read(job, stamp, known)
            elif known.view is not None:
                self._ask(known)

    def _stamps(self) -> dict[str, _Stamp]:
        try:
            with os.scandir(self._jobs) as found:
                stamps = {entry.name: _stamp(entry.path) for entry in found if entry.is_dir()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SettingsError(f"{self._jobs} cannot be read: {error.strerror}", fix=f"ls -ld {self._jobs}") from error
        return {job: stamp for job, stamp in stamps.items() if stamp[: len(_RECORDS)] != _NO_RECORD}

    def _read(self, job: str, stamp: _Stamp, before: _Known | None) -> None:
        """Read job.json as it is now."""
        folder = JobFolder(self._jobs / job)
        # Until it can be read: a job whose record is damaged is as old as the file.
        standing = Standing(job, max(file.modified for file in stamp[: len(_RECORDS)]) / 1e9, None)
        known = _Known(folder, stamp, standing)
        self._known[job] = known
        self._changes += 1
        try:
            record = folder.read()
        except AxonError as error:
            known.row = unreadable_row(standing, error)
            return
        known.written, known.waits = record.state, bool(record.waits_for)
        known.standing = Standing(job, record.created, record.state)
        if not is_over(record.state):
            known.view = _view_before(before, stamp) or FolderView(folder, ours=False)
            if before and before.stamp[_MARK] != stamp[_MARK]:  # a host has told something else
                known.view.ask_again()
            self._ask(known)

    def _ask(self, known: _Known) -> None:
        """Whether some program works on a job that is not over: nothing in its folder changes when one is killed."""
        assert known.view is not None
        assert known.written is not None
        try:
            at_work = known.view.is_held()
        except AxonError as error:
            self._cannot_be_read(known, error)
            return
        state = seen_state(known.written, at_work=at_work, waits=known.waits)
        if state is not known.standing.state:
            known.standing = Standing(known.standing.job, known.standing.created, state)
            known.row = None
            self._changes += 1

    def _row(self, known: _Known) -> JobRow | None:
        view = known.view or FolderView(known.folder, ours=False)
        try:
            if known.row is not None:
                return told_now(known.row, known.standing, hosted_data(known.folder)) if known.row.told else known.row
            seen = view.look()
            row = row_of(seen, self._command, hosted_data(known.folder))
        except NotFound:  # it was removed a moment ago
            return None
        except AxonError as error:
            return self._cannot_be_read(known, error)
        except OSError as error:
            return self._cannot_be_read(known, _unreadable(known.folder, error))
        if not seen.at_work:
            view.forget()
            known.row = row
        return row

    def _cannot_be_read(self, known: _Known, error: AxonError) -> JobRow:
        """Until its folder changes."""
        if known.standing.state is not None:
            self._changes += 1
        known.standing = Standing(known.standing.job, known.standing.created, None)
        known.view, known.row = None, unreadable_row(known.standing, error)
        return known.row


def _stamp(folder: str) -> _Stamp:
    return tuple(_file_stamp(f"{folder}/{name}") for name in _FILES)


def _file_stamp(path: str) -> _FileStamp:
    try:
        found = os.stat(path)
    except OSError:
        return _GONE
    return _FileStamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _view_before(before: _Known | None, stamp: _Stamp) -> FolderView | None:
    """The one that has read the events so far, unless others took their place: those of a hosted job come again."""
    if before is None:
        return None
    old, new = before.stamp[_EVENTS], stamp[_EVENTS]
    return before.view if old == _GONE or (old.inode == new.inode and old.size <= new.size) else None


def _unreadable(folder: JobFolder, error: OSError) -> SettingsError:
    where = error.filename or folder.path
    return SettingsError(f"{where} cannot be read: {error.strerror or error}", fix=f"ls -l {folder.path}")
