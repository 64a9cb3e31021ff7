"""The weights of a round of a job in any state, from what is kept of it: what `axon fetch --round` brings. Blocks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from axonp2p.client.no_result import begin_anew
from axonp2p.client.storage.checkpoints import Checkpoint
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.disk_errors import not_writable
from axonp2p.errors import JobFailed
from axonp2p.files import replacing
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.kept.model_files import first_that_fits, write_weights
from axonp2p.kinds.train.record import TrainRecord

TRIES = 3
"""A program that works on the job may remove an old state just as it is to be read."""


def write_round(job: JobFolder, which: str, to: Path) -> int:
    """Write the weights after the last or the best round that is kept ("last", "best"), or after that many; gives how
    many rounds are in them.

    Raises `JobFailed` when they are not here, `SettingsError` of the disk.
    """
    for left in reversed(range(TRIES)):
        record = job.read()
        assert isinstance(record, TrainRecord)
        if record.state is JobState.FINISHED:
            return _copy_of_finished(job, record, which, to)
        kept = _chosen(record, _kept(job, record), which)
        try:
            write_weights(job, record, kept, to)
            return kept.rounds
        except (JobFailed, FileNotFoundError):
            if kept.path.exists() or not left:
                raise
    raise AssertionError("the last try has raised")


def _kept(job: JobFolder, record: TrainRecord) -> list[Checkpoint]:
    """The newest first. One that is newer than the books is of a round that is not in them."""
    return [one for one in job.checkpoints(0).all() if one.rounds <= max(record.kept_round, record.round)]


def _chosen(record: TrainRecord, kept: Sequence[Checkpoint], which: str) -> Checkpoint:
    if not kept:
        raise JobFailed(f"no round of {record.id} is kept: it is {record.state}", fix=begin_anew(record))
    if which == "last":
        if found := first_that_fits(kept):
            return found
        names = ", ".join(one.path.name for one in kept)
        raise JobFailed(f"no state of {record.id} is whole", cause=f"damaged: {names}", fix=begin_anew(record))
    number = _number_of(record, which)
    found = next((one for one in kept if one.rounds == number), None)
    if found is None:
        raise _not_kept(record, number, [one.rounds for one in kept])
    return found


def _copy_of_finished(job: JobFolder, record: TrainRecord, which: str, to: Path) -> int:
    number = record.round if which == "last" else _number_of(record, which)
    there = {record.round: job.model}
    if record.best and record.best_sha256:
        there[record.best.rounds] = job.best
    if number not in there:
        raise _not_kept(record, number, sorted(there, reverse=True))
    try:
        with replacing(to) as file, there[number].open("rb") as source:
            shutil.copyfileobj(source, file)
    except OSError as error:
        raise not_writable(to, error) from error
    return number


def _number_of(record: TrainRecord, which: str) -> int:
    if which != "best":
        return int(which)
    if record.best is None:
        metric = record.best_by.metric
        raise JobFailed(
            f"no round of {record.id} is the best: none that is kept has told {metric}",
            cause=f"evaluate() gives {', '.join(sorted(record.metrics)) or 'no metrics'}",
            fix=f"axon fetch {record.id} --round last -o OUT",
        )
    return record.best.rounds


def _not_kept(record: TrainRecord, number: int, there: Sequence[int]) -> JobFailed:
    named = ", ".join(map(str, there))
    return JobFailed(
        f"round {number} of {record.id} is not kept",
        cause=f"what is kept: after round {named}. keep-states in job.toml says how many are",
        fix=f"axon fetch {record.id} --round {there[0]} -o OUT",
    )
