"""Opening a logger: TensorBoard, W&B or MLflow, each loaded only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from axonp2p.client.events.event import Event
from axonp2p.client.job import Job
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import SettingsError
from axonp2p.jobs.kinds import KINDS
from axonp2p.loggers.values import LIBRARIES, LoggedSteps, LoggerChoice


class EventLogger(Protocol):
    """Writes down what happens to one job."""

    @property
    def where(self) -> str:
        """Where people find it: a folder or an address."""
        ...

    def add(self, event: Event) -> None:
        """Take in the event that has just happened. Raises `SettingsError` when it cannot be written down."""
        ...

    def close(self) -> None:
        """Nothing more will happen in this life of the job. Raises as `add`."""
        ...


@contextmanager
def open_logger(name: str, job: Job, folder: str | Path | None = None) -> Iterator[EventLogger]:
    """A logger for the events of a job: "tensorboard" (into `folder`/JOB, else runs/JOB), "wandb" or "mlflow".

    Give it each event with `add`. Raises `SettingsError` when its library is missing or it cannot be opened.
    """
    choice = LoggerChoice(name) if folder is None else LoggerChoice(name, Path(folder))
    require(choice.name)
    logger = opened(choice, job.record)
    try:
        yield logger
    finally:
        logger.close()


def require(name: str) -> None:
    """Raises `SettingsError` for a logger that there is not, or whose library is missing."""
    if name not in LIBRARIES:
        raise SettingsError(f"there is no logger {name}", fix=f"one of {', '.join(LIBRARIES)}")
    library = LIBRARIES[name]
    if find_spec(library.module) is None:
        raise SettingsError(
            f"nothing can be logged with {library.title}",
            cause=f"the library {library.module} is not installed",
            fix=f"pip install 'axonp2p[{library.extra}]'",
        )


def opened(choice: LoggerChoice, record: JobRecord) -> EventLogger:
    """Begin to log that job, or go on with it. Raises `SettingsError`."""
    if KINDS[record.kind].unit not in LoggedSteps.UNITS:
        known = "loggers take the rounds of a training, or the copies of a command"
        raise SettingsError(f"{record.id} is a job of kind {record.kind}, and {known}", fix="leave it out")
    if choice.name == "wandb":
        from axonp2p.loggers.wandb_run import WandbRun

        return WandbRun(record)
    if choice.name == "mlflow":
        from axonp2p.loggers.mlflow_run import MlflowRun

        return MlflowRun(record)
    from axonp2p.loggers.tensorboard_files import TensorBoardFiles

    return TensorBoardFiles(choice.folder, record.id)


def logged(choice: LoggerChoice, record: JobRecord, events: Iterable[Event]) -> str:
    """All that happened to a job, at once; where it lies. Raises `SettingsError`."""
    logger = opened(choice, record)
    try:
        for event in events:
            logger.add(event)
    finally:
        logger.close()
    return logger.where
