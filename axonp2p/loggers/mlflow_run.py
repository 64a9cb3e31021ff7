"""A job's rounds or copies for MLflow: a run a job, which a job that is resumed goes on with. Needs `axonp2p[mlflow]`.

Its own settings decide where that goes: `MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`.
"""

from __future__ import annotations

import os

from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from axonp2p.client.events.events import Event, JobFinished, JobPaused
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.errors import SettingsError
from axonp2p.loggers.values import LoggedSteps, parameters_of

EXPERIMENT = "axon"
JOB_TAG = "axon.job"


class MlflowRun:
    """One run; its tag `axon.job` is the job's id."""

    def __init__(self, record: JobRecord) -> None:
        """Raises `SettingsError` when MLflow does not open it."""
        self._end = "FAILED"
        self._steps = LoggedSteps()
        try:
            self._client = MlflowClient()
            self._run = self._found(record.id) or self._new(record)
            self._client.update_run(self._run, status="RUNNING")
        except (MlflowException, OSError) as error:
            fix = "MLFLOW_TRACKING_URI=http://... of a server; or pip install mlflow, which brings a database for here"
            raise SettingsError("MLflow does not open a run", cause=str(error), fix=fix) from error

    @property
    def where(self) -> str:
        """Its tracking address, and the run's id there."""
        return f"{self._client.tracking_uri} {self._run}"

    def add(self, event: Event) -> None:
        """Take in the event that has just happened. Raises `SettingsError`."""
        if step := self._steps.of(event):
            moment = round(step.at * 1000)
            told = [Metric(name, value, moment, step.step) for name, value in step.values.items()]
            try:
                self._client.log_batch(self._run, metrics=told)
            except (MlflowException, OSError) as error:
                raise SettingsError("MLflow takes nothing more", cause=str(error)) from error
        if isinstance(event, JobFinished | JobPaused):
            self._end = "FINISHED" if isinstance(event, JobFinished) else "KILLED"

    def close(self) -> None:
        """The run is finished, killed (the job was left), or failed."""
        try:
            self._client.set_terminated(self._run, status=self._end)
        except (MlflowException, OSError) as error:
            raise SettingsError("MLflow did not take the end of the run", cause=str(error)) from error

    def _found(self, job: str) -> str:
        runs = self._client.search_runs([self._experiment()], f"tags.`{JOB_TAG}` = '{job}'", max_results=1)
        return str(runs[0].info.run_id) if runs else ""

    def _new(self, record: JobRecord) -> str:
        run = self._client.create_run(self._experiment(), tags={JOB_TAG: record.id}, run_name=record.id)
        settings = [Param(name, value) for name, value in parameters_of(record.spec).items()]
        self._client.log_batch(run.info.run_id, params=settings)
        return str(run.info.run_id)

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
        known = self._client.get_experiment_by_name(name)
        return str(known.experiment_id if known else self._client.create_experiment(name))
