"""The files of a training's weights, written from the states that are kept of it; no task's code runs for that.

model.layout         which tensors they have: 24 bytes (values with outer momentum, all values, bytes of frozen
                     parameters; little endian), then the `FileLayout` as members told it; job.json has its SHA-256
model.safetensors    after the last round, once the job has finished
best.safetensors     after the best one, where that is another
"""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from axonp2p.client.no_result import begin_anew
from axonp2p.client.storage.checkpoints import Checkpoint
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.disk_errors import not_writable
from axonp2p.errors import JobFailed, MalformedMessage, PeerMisbehaved, SettingsError
from axonp2p.files import replacing
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.tensors.checkpoint_file import LENGTH_BYTES, Model, header_length
from axonp2p.training.messages import FileLayout
from axonp2p.training.state_transfer.model_layout import MOST_BYTES, pack_layout, read_layout

TRIES = 3
"""A program that works on the job may remove an old state just as it is to be read."""
_SIZES = struct.Struct("<QQQ")
_WHOLE_LAYOUT = _SIZES.size + MOST_BYTES


def keep_layout(journal: JobJournal, layout: FileLayout, model: Model) -> None:
    """Put it into the job's folder, unless it is there."""
    record, path = journal.record, journal.folder.layout
    assert isinstance(record, TrainRecord)
    content = _SIZES.pack(model.parameters, model.values, model.frozen) + pack_layout(layout, model)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != record.layout_sha256 or not path.exists():
        journal.disk.do(partial(_replace, path, content))
        journal.change(layout_sha256=sha256)


def write_weights(job: JobFolder, record: TrainRecord, kept: Checkpoint, to: Path) -> bytes:
    """Write the weights of a kept state as a model file; its SHA-256. Blocks.

    Raises `JobFailed` when the state or the layout is not what it was, and `SettingsError` of the disk.
    """
    # numpy is slow to load, and of use only here
    from axonp2p.training.state_transfer.model_file import NOTHING, write_model

    if not kept.fits():
        raise JobFailed(
            f"the state after round {kept.rounds} is not on this disk",
            cause=f"{kept.path.name} is damaged",
            fix=f"axon fetch {record.id} --round last -o OUT      (another round that is kept)",
        )
    layout, model = _kept_layout(job, record)
    if _values_in(kept) != model.state_bytes:
        raise JobFailed(f"{job.layout} is not the layout of {kept.path.name}", fix=_again(record))
    frozen = _frozen_of(job, record, kept, model) if model.frozen else NOTHING
    try:
        with replacing(to, lasting=True) as file:
            return write_model(file, kept.path, layout, model, frozen)
    except OSError as error:
        raise not_writable(to, error) from error


def _frozen_of(job: JobFolder, record: TrainRecord, kept: Checkpoint, model: Model) -> memoryview:
    """The frozen parameters that this state names. Raises `JobFailed` where they are not right."""
    found = job.checkpoints(0).frozen(model.frozen_of(memoryview(kept.read())))
    if found is None or not found.fits():
        raise JobFailed(
            "the frozen parameters of the model are not on this disk",
            cause=f"{found.path.name} is damaged" if found else "their file is not there any more",
            fix=_again(record),
        )
    return found.file


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
        except (JobFailed, SettingsError, FileNotFoundError):
            if kept.path.exists() or not left:
                raise
    raise AssertionError("the last try has raised")


def _kept_layout(job: JobFolder, record: TrainRecord) -> tuple[FileLayout, Model]:
    try:
        with job.layout.open("rb") as file:
            content = file.read(_WHOLE_LAYOUT + 1)
    except OSError as error:
        message = f"nothing says which tensors the weights of {record.id} have"
        raise JobFailed(message, cause=f"{job.layout}: {error.strerror}", fix=_again(record)) from error
    try:
        if hashlib.sha256(content).hexdigest() != record.layout_sha256:
            raise MalformedMessage("it does not have its hash")
        model = Model(*_SIZES.unpack_from(content))
        layout = read_layout(content[_SIZES.size :], model)
        return layout, replace(model, frozen_name=layout.frozen_name)
    except (PeerMisbehaved, struct.error) as error:
        raise JobFailed(f"{job.layout} is damaged: {error}", fix=_again(record)) from error


def _again(record: TrainRecord) -> str:
    if record.state in (JobState.FINISHED, JobState.CANCELLED):
        return f"submit its folder again: axon submit {record.folder}"
    return f"axon resume {record.id}      (its peers tell it again)"


def _values_in(kept: Checkpoint) -> int:
    with kept.path.open("rb") as file:
        begin = header_length(file.read(LENGTH_BYTES))
    return kept.path.stat().st_size - begin


def _replace(path: Path, content: bytes) -> None:
    with replacing(path, lasting=True) as file:
        file.write(content)


def _kept(job: JobFolder, record: TrainRecord) -> list[Checkpoint]:
    """The newest first. One that is newer than the books is of a round that is not in them."""
    return [one for one in job.checkpoints(0).all() if one.rounds <= max(record.kept_round, record.round)]


def _chosen(record: TrainRecord, kept: Sequence[Checkpoint], which: str) -> Checkpoint:
    if not kept:
        raise JobFailed(f"no round of {record.id} is kept: it is {record.state}", fix=begin_anew(record))
    if which == "last":
        if found := next((one for one in kept if one.fits()), None):  # the first that the disk has not damaged
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
