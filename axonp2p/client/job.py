"""A job in the hands of whoever submitted it."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, overload

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.event_feed import EventFeed
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import JobFailed, SettingsError
from axonp2p.jobs.lifecycle import JobState

Weights = dict[str, Any]
"""A state dict: names to `torch.Tensor`, which the client's own code never names."""


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
        """What is written down of it: state, round, peers, loss, credits."""
        return self._folder.read()

    def events(self) -> Iterator[Event]:
        """All that happens, from submit on, until the job is finished, left or cancelled. Blocks in between.

        Raises the `AxonError` that the job failed with.
        """
        return self._feed.read()

    def wait(self, timeout: float | None = None) -> Event | None:
        """The last event (`JobFinished`, `JobLeft`, `JobCancelled`); None after `timeout` seconds without one.

        Raises the `AxonError` that the job failed with.
        """
        return self._feed.wait(timeout)

    def pause(self) -> None:
        """Stop the job after the round that runs; `Swarm.resume` goes on from there. Does not wait."""
        if self._pause:
            self._pause()

    def leave(self) -> None:
        """Stop the job soon, keeping its accepted rounds; `Swarm.resume` goes on from there. Does not wait."""
        if self._leave:
            self._leave()

    def cancel(self) -> None:
        """Stop the job at once, for good. Does not wait."""
        if self._cancel:
            self._cancel()

    @overload
    def fetch(self, out: None = None) -> Weights: ...
    @overload
    def fetch(self, out: str | Path) -> Path: ...
    def fetch(self, out: str | Path | None = None) -> Weights | Path:
        """The trained weights as a state dict; or, into the folder `out`: model.safetensors, metrics.csv and logs.

        Waits for a job that runs here. Raises what the job failed with, or `JobFailed` when it has no weights.
        """
        last = self.wait()
        if not isinstance(last, JobFinished) and self.record.state is not JobState.FINISHED:
            raise JobFailed(f"{self.id} has no weights: it is {self.record.state}", fix=f"axon resume {self.id}")
        if out is None:
            # By name, at call time: the process of `axon submit` must never map libtorch, so nothing of the
            # client imports it; who asks for tensors has torch in their own process already.
            weights = importlib.import_module("axonp2p.training.trainer.weights")
            loaded: Weights = weights.load(self._folder.model)
            return loaded
        return self._copy(Path(out))

    def _copy(self, out: Path) -> Path:
        try:
            out.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._folder.model, out / self._folder.model.name)
            for file in (self._folder.metrics, self._folder.events, self._folder.report):
                if file.exists():
                    shutil.copyfile(file, out / file.name)
            if self._folder.logs.exists():
                shutil.copytree(self._folder.logs, out / "logs", dirs_exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"cannot write to {out}: {error.strerror or error}", fix="choose another folder with -o OUT"
            ) from error
        return out
