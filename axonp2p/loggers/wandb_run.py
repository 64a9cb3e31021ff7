"""A job's rounds or copies for Weights & Biases: a run a job, which a job that is resumed goes on with.

Needs `axonp2p[wandb]`. Its own settings decide where that goes: `WANDB_MODE=offline`, `WANDB_PROJECT`,
`WANDB_ENTITY`, `wandb login`.
"""

from __future__ import annotations

import os
from pathlib import Path

import wandb

from axonp2p.client.events.events import Event, JobFinished
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import SettingsError
from axonp2p.loggers.values import LoggedSteps, parameters_of

PROJECT = "axon"
_FIX = "wandb login, or WANDB_MODE=offline and wandb sync later"


class WandbRun:
    """One run; its id is the job's."""

    def __init__(self, record: JobRecord) -> None:
        """Raises `SettingsError` when W&B does not open it."""
        self._finished = False
        self._steps = LoggedSteps()
        # The job's lines are ours; and what this computer holds and does meanwhile says nothing of the peers.
        settings = wandb.Settings(
            console="off",
            silent=True,
            disable_code=True,
            disable_git=True,
            x_disable_stats=True,
            x_save_requirements=False,
        )
        try:
            if wandb.setup().settings.mode == "online" and not wandb.login(prompt=False):
                raise SettingsError("W&B knows no key of yours", fix=_FIX)
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT") or PROJECT,
                id=record.id,
                name=record.id,
                resume="allow",
                config=dict(parameters_of(record.spec)),
                settings=settings,
            )
        except (wandb.Error, OSError) as error:
            raise SettingsError("W&B does not open a run", cause=str(error), fix=_FIX) from error

    @property
    def where(self) -> str:
        """Its address, or its folder where nothing is sent."""
        return str(Path(self._run.dir).parent if self._run.offline else self._run.url)

    def add(self, event: Event) -> None:
        """Take in the event that has just happened. Raises `SettingsError`."""
        if step := self._steps.of(event):
            try:
                self._run.log(step.values, step=step.step)
            except (wandb.Error, OSError) as error:
                raise SettingsError("W&B takes nothing more", cause=str(error)) from error
        self._finished |= isinstance(event, JobFinished)

    def close(self) -> None:
        """The run is finished, or has failed when the job has not finished."""
        try:
            self._run.finish(exit_code=0 if self._finished else 1)
        except (wandb.Error, OSError) as error:
            raise SettingsError("W&B did not take the end of the run", cause=str(error)) from error
