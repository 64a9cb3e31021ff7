"""The values told to a logger of a job: its settings once, and the numbers of each round, or of each copy. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axonp2p.client.events.event import Event
from axonp2p.kinds.run.events import CopyEnded, IndexFailed, OutputsKept
from axonp2p.kinds.train.events import RoundFinished

LONGEST_PARAMETER = 250
"""Characters of a setting's value."""


@dataclass(frozen=True)
class LoggerLibrary:
    """One that a job can be logged with."""

    title: str
    """As people know it."""
    module: str
    """The module that is imported of it."""
    extra: str
    """The extra that brings it: `axonp2p[extra]`."""


LIBRARIES = {
    "tensorboard": LoggerLibrary("TensorBoard", "tensorboard", "tensorboard"),
    "wandb": LoggerLibrary("W&B", "wandb", "wandb"),
    "mlflow": LoggerLibrary("MLflow", "mlflow", "mlflow"),
}
"""By the name that `--log` and `open_logger` take."""


@dataclass(frozen=True)
class LoggerChoice:
    """One of them, as a person asked for it."""

    name: str
    folder: Path = Path("runs")
    """Of TensorBoard's files; the others have settings of their own for where they write."""

    @property
    def library(self) -> LoggerLibrary:
        """Which it is."""
        return LIBRARIES[self.name]


@dataclass(frozen=True)
class LoggedStep:
    """One step of a logger's curves: a round; of copies of a command one more that has its result."""

    step: int
    """From 1."""
    at: float
    """Unix seconds."""
    values: dict[str, float]


class LoggedSteps:
    """From the events of one job, in their order, to its steps."""

    UNITS = frozenset({"round", "copy"})
    """The units that jobs count that have any (`JobKind.unit`)."""

    def __init__(self) -> None:
        self._ended: dict[int, CopyEnded] = {}
        """By index: how the copy went that ended last."""

    def of(self, event: Event) -> LoggedStep | None:
        """The step that this event is; None for most."""
        match event:
            case RoundFinished():
                return LoggedStep(event.round + 1, event.at, values_of(event))
            case CopyEnded() if not event.unneeded:
                self._ended[event.index] = event
            case OutputsKept():
                return self._copy(event, {"copy/files": float(event.files), "copy/bytes": float(event.bytes)})
            case IndexFailed():
                return self._copy(event, {})
        return None

    def _copy(self, event: OutputsKept | IndexFailed, files: Mapping[str, float]) -> LoggedStep:
        ended = self._ended.pop(event.index, None)  # None: it ended in an earlier life of the job
        went = {
            "copy/exit_code": float(ended.code),
            "copy/seconds": ended.seconds,
            "copy/cpu_seconds": ended.cpu_seconds,
            "copy/most_memory": float(ended.most_memory),
            "copy/attempts": float(ended.attempt + 1),
        } if ended else {}  # fmt: skip
        whose = {"copy/index": float(event.index), "copy/failed": float(isinstance(event, IndexFailed))}
        return LoggedStep(event.done, event.at, {**whose, **went, **files, "job/done": float(event.done)})


def values_of(event: RoundFinished) -> dict[str, float]:
    """The numbers of one round, by name."""
    speeds = {f"samples_per_second/{_part(name)}": speed for name, speed in event.samples_per_second.items()}
    return {
        "loss/train": event.loss,
        **{f"held_out/{_part(name)}": value for name, value in event.metrics.items()},
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


def parameters_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a job as job.json has them, as text by names such as `train.rounds`."""
    found: dict[str, str] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": inner for key, inner in parameters_of(value).items()}
        else:
            found[name] = str(value)[:LONGEST_PARAMETER]
    return found


def _part(name: str) -> str:
    """A stranger's name as a part of ours: loggers group by slashes."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:64]
