"""A job's rounds or copies for TensorBoard: a folder a job, a file a life of it.

Needs `axonp2p[tensorboard]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axonp2p.client.events.events import Event, JobSubmitted
from axonp2p.errors import SettingsError
from axonp2p.loggers.values import LoggedSteps


class TensorBoardFiles:
    """Writes `DIR/<job>/events.out.tfevents...` as events come."""

    def __init__(self, folder: Path, job: str) -> None:
        self._folder = folder / job
        self._file: Path | None = None
        self._steps = LoggedSteps()

    @property
    def where(self) -> str:
        """The job's folder."""
        return str(self._folder)

    def add(self, event: Event) -> None:
        """Take in the event that has just happened. Raises `SettingsError`."""
        step = self._steps.of(event)
        try:
            if isinstance(event, JobSubmitted) or (self._file is None and step):
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = self._folder / f"events.out.tfevents.{int(event.at):010d}.axon"
                _append(self._file, event.at, file_version="brain.Event:2")
            if step and self._file:
                _append(self._file, step.at, step=step.step, summary={"value": _scalars(step.values)})
        except OSError as error:
            raise SettingsError(
                f"cannot write to {self._folder}: {error.strerror or error}", fix="choose another folder for it"
            ) from error

    def close(self) -> None:
        """Nothing is open between two events."""


def _scalars(values: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"tag": tag, "simple_value": value} for tag, value in values.items()]


def _append(path: Path, at: float, **fields: Any) -> None:
    """One event; a file begins with its version. Not by the library's `EventFileWriter`, which loads TensorFlow."""
    from tensorboard.compat.proto.event_pb2 import Event as Record
    from tensorboard.summary.writer.record_writer import RecordWriter

    with path.open("ab") as file:
        RecordWriter(file).write(Record(wall_time=at, **fields).SerializeToString())
