"""A job in the hands of whoever submitted it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.hosted.hosted_mark import is_at_work
from axonp2p.client.job_view import as_html, follow, opened_page, page_of
from axonp2p.client.no_result import no_result
from axonp2p.client.storage.event_feed import EventFeed, JobEvents
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import SettingsError
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import JobState


class Job:
    """One job: running in this program (from `submit` or `resume`), or as it lies on the disk."""

    def __init__(
        self,
        folder: JobFolder,
        feed: EventFeed,
        *,
        pause: Callable[[], None] | None = None,
        leave: Callable[[], None] | None = None,
        cancel: Callable[[], None] | None = None,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self.id = folder.path.name
        self.folder = folder.path
        self._folder = folder
        self._feed = feed
        self._pause = pause
        self._leave = leave
        self._cancel = cancel
        self._stop = stop

    def __repr__(self) -> str:
        return f"Job({self.id})"

    def _repr_html_(self) -> str:
        return as_html(self.record, at_work=is_at_work(self._folder), page=opened_page(self._folder))

    @property
    def page(self) -> str:
        """The address of the job's page, which this program serves on loopback from now on to its end.

        Raises `SettingsError`.
        """
        return page_of(self._folder)

    def show(self) -> Event | None:
        """Follow the job to its end: a bar in a terminal, a picture that changes in a notebook. Gives and raises as
        `wait`."""
        follow(self, self.record.kind, self.events())
        return self.wait()

    @property
    def record(self) -> JobRecord:
        """The record of it: state, peers, credits, and what its kind adds."""
        return self._folder.read()

    def events(self) -> JobEvents:
        """All that happens, from submit on, until the job is finished, left or cancelled: for `for` and `async for`.

        Reading raises the `AxonError` that the job failed with. `axonp2p.events` has the classes.
        """
        return JobEvents(self._feed)

    def wait(self, timeout: float | None = None) -> Event | None:
        """The last event (`JobFinished`, `JobPaused`, `JobCancelled`); None after `timeout` seconds without one.

        Raises the `AxonError` that the job failed with.
        """
        return self._feed.wait(timeout)

    def pause(self) -> None:
        """Stop the job after the round or the copies that run; `Swarm.resume` goes on from there. Does not wait."""
        if self._pause:
            self._pause()

    def leave(self) -> None:
        """Stop the job soon, keeping what is done; `Swarm.resume` goes on from there. Does not wait."""
        if self._leave:
            self._leave()

    def stop(self) -> None:
        """Finish the job early, with what it comes to by the end of the round or the copies that run.

        Does not wait; `wait()` and `fetch()` do. A job on which no program works has finished when this returns, with
        the newest of what is kept of it; then this raises `JobFailed` where nothing is, or it is over for good.
        """
        if self._stop:
            self._stop()

    def cancel(self) -> None:
        """Stop the job at once, for good: it cannot be resumed. Rounds that were kept stay. Does not wait."""
        if self._cancel:
            self._cancel()

    @overload
    def fetch(self, out: None = None, *, round: int | str | None = None) -> Any: ...
    @overload
    def fetch(self, out: str | Path, *, round: int | str | None = None) -> Path: ...
    def fetch(self, out: str | Path | None = None, *, round: int | str | None = None) -> Any:
        """The result of the job; or, into the folder `out`: the files of that, its events and its logs.

        Of a training: the weights, a state dict of names to `torch.Tensor`. Of copies of a command: a list of
        `kinds.run.fetched.FetchedCopy`, failed ones too. Of a kind without files: its record. Waits for a job that runs
        here. Raises what the job failed with, or `JobFailed` when it has no result.

        With `round` the weights of a training in any state, at once: "last" or "best" of the rounds whose states are
        kept, or a number, from 1.
        """
        if round is not None:
            return self._fetch_round(str(round), Path(out) if out is not None else None)
        last, record = self.wait(), self.record
        if not isinstance(last, JobFinished) and record.state is not JobState.FINISHED:
            raise no_result(record, at_work=is_at_work(self._folder))
        kind = KINDS[record.kind]
        if out is None and not kind.result_files:
            return record
        if out is None:
            # By name, at call time: the process of `axon submit` must never map libtorch, so nothing of the
            # client imports it; who asks for tensors has torch in their own process already.
            return load(kind.result)(self.folder / kind.result_files[0])
        return self._copy(Path(out), kind.result_files)

    def files_in(self, out: Path) -> list[Path]:
        """Where `fetch` would write in that folder, without looking into the folders of copies."""
        return [out / name for name in (*KINDS[self.record.kind].result_files, *self._told_files)]

    @property
    def _told_files(self) -> list[str]:
        """The files that every fetch brings beside the result."""
        folder = self._folder
        return [file.name for file in (folder.metrics, folder.events, folder.report, folder.logs)]

    def _fetch_round(self, which: str, out: Path | None) -> Any:
        record = self.record
        kind = KINDS[record.kind]
        if not kind.write_round:
            raise SettingsError(f"{self.id} is a job of kind {kind.name}, which has no rounds", fix="leave round away")
        if which not in ("last", "best") and not re.fullmatch(r"[0-9]{1,9}", which):
            raise SettingsError(f"no round is called {which[:40]}", fix='say a number from 1 on, "last" or "best"')
        write, name = load(kind.write_round), kind.result_files[0]
        if out is None:
            with tempfile.TemporaryDirectory(prefix="axon-round-") as scratch:
                write(self._folder, which, Path(scratch, name))
                return load(kind.result)(Path(scratch, name))
        self._copy(out, ())
        write(self._folder, which, out / name)
        return out

    def _copy(self, out: Path, names: tuple[str, ...]) -> Path:
        try:
            out.mkdir(parents=True, exist_ok=True)
            for name in (*names, *self._told_files):
                source = self.folder / name
                if source.is_dir():
                    shutil.copytree(source, out / name, dirs_exist_ok=True)
                elif source.exists() or name in names[:1]:
                    shutil.copyfile(source, out / name)
        except OSError as error:
            raise SettingsError(
                f"cannot write to {out}: {error.strerror or error}", fix="choose another folder"
            ) from error
        return out
