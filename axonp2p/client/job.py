"""A job in the hands of whoever submitted it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.event_feed import EventFeed, JobEvents
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import JobFailed, SettingsError
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
    ) -> None:
        self.id = folder.path.name
        self.folder = folder.path
        self._folder = folder
        self._feed = feed
        self._pause = pause
        self._leave = leave
        self._cancel = cancel

    def __repr__(self) -> str:
        return f"Job({self.id})"

    @property
    def record(self) -> JobRecord:
        """What is written down of it: state, peers, credits, and what its kind adds."""
        return self._folder.read()

    def events(self) -> JobEvents:
        """All that happens, from submit on, until the job is finished, left or cancelled: for `for` and `async for`.

        Reading raises the `AxonError` that the job failed with. `axonp2p.events` has the classes.
        """
        return JobEvents(self._feed)

    def wait(self, timeout: float | None = None) -> Event | None:
        """The last event (`JobFinished`, `JobLeft`, `JobCancelled`); None after `timeout` seconds without one.

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

    def cancel(self) -> None:
        """Stop the job at once, for good. Does not wait."""
        if self._cancel:
            self._cancel()

    @overload
    def fetch(self, out: None = None) -> Any: ...
    @overload
    def fetch(self, out: str | Path) -> Path: ...
    def fetch(self, out: str | Path | None = None) -> Any:
        """What the job came to; or, into the folder `out`: the files of that, its events and its logs.

        Of a training: the weights, a state dict of names to `torch.Tensor`. Of copies of a command: a list of
        `kinds.run.fetched.FetchedCopy`, failed ones too. Of a kind without files: its record. Waits for a job that runs
        here. Raises what the job failed with, or `JobFailed` when it has no result.
        """
        last, record = self.wait(), self.record
        if not isinstance(last, JobFinished) and record.state is not JobState.FINISHED:
            raise JobFailed(f"{self.id} has no result: it is {record.state}", fix=f"axon resume {self.id}")
        kind = KINDS[record.kind]
        if out is None and not kind.result_files:
            return record
        if out is None:
            # By name, at call time: the process of `axon submit` must never map libtorch, so nothing of the
            # client imports it; who asks for tensors has torch in their own process already.
            return load(kind.result)(self.folder / kind.result_files[0])
        return self._copy(Path(out), kind.result_files)

    def _copy(self, out: Path, names: tuple[str, ...]) -> Path:
        others = [file.name for file in (self._folder.events, self._folder.report, self._folder.logs)]
        try:
            out.mkdir(parents=True, exist_ok=True)
            for name in (*names, *others):
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
