"""A job's rounds for TensorBoard: a folder a job, a file a life of it, a step a round. Needs `axonp2p[tensorboard]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from axonp2p.client.events.events import Event, JobSubmitted
from axonp2p.errors import SettingsError
from axonp2p.kinds.train.events import RoundFinished


def require_tensorboard() -> None:
    """Raises `SettingsError` where the library that writes event files is missing."""
    if find_spec("tensorboard") is None:
        raise SettingsError(
            "no event files can be written for TensorBoard",
            cause="the library tensorboard is not installed",
            fix="pip install 'axonp2p[tensorboard]'",
        )


class TensorBoardFiles:
    """Writes `DIR/<job>/events.out.tfevents...` as events come."""

    def __init__(self, folder: Path, job: str) -> None:
        self._folder = folder / job
        self._file: Path | None = None

    @classmethod
    def write(cls, folder: Path, job: str, events: Iterable[Event]) -> Path:
        """All at once; gives the job's folder. Raises `SettingsError`."""
        files = cls(folder, job)
        for event in events:
            files.add(event)
        return files._folder

    def add(self, event: Event) -> None:
        """What has just happened. Raises `SettingsError`."""
        try:
            if isinstance(event, JobSubmitted) or (self._file is None and isinstance(event, RoundFinished)):
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = self._folder / f"events.out.tfevents.{int(event.at):010d}.axon"
                _append(self._file, event.at, file_version="brain.Event:2")
            if isinstance(event, RoundFinished) and self._file:
                _append(self._file, event.at, step=event.round + 1, summary={"value": _scalars(values_of(event))})
        except OSError as error:
            raise SettingsError(
                f"cannot write to {self._folder}: {error.strerror or error}", fix="choose another --tensorboard DIR"
            ) from error


def values_of(event: RoundFinished) -> dict[str, float]:
    """What one round says, by tag."""
    speeds = {f"samples_per_second/{_tag(name)}": speed for name, speed in event.samples_per_second.items()}
    return {
        "loss/train": event.loss,
        **{f"held_out/{_tag(name)}": value for name, value in event.metrics.items()},
        "round/seconds": event.seconds,
        "round/samples": float(event.samples),
        "round/peers": float(len(event.samples_per_second)),
        "round/bytes": float(event.round_bytes),
        "round/dense_bytes": float(event.dense_bytes),
        "round/exchange_seconds": event.exchange_seconds,
        "job/credits": event.credits,
        "job/wire_bytes": float(event.wire_bytes),
        **speeds,
    }


def _scalars(values: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"tag": tag, "simple_value": value} for tag, value in values.items()]


def _append(path: Path, at: float, **fields: Any) -> None:
    """One event; a file begins with its version. Not by the library's `EventFileWriter`, which loads TensorFlow."""
    from tensorboard.compat.proto.event_pb2 import Event as Record
    from tensorboard.summary.writer.record_writer import RecordWriter

    with path.open("ab") as file:
        RecordWriter(file).write(Record(wall_time=at, **fields).SerializeToString())


def _tag(name: str) -> str:
    """A stranger's name as a part of a tag: TensorBoard groups by slashes."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:64]
