"""The files of a training's weights, written from the states that are kept of it; no task's code runs for that.

model.layout         which tensors they have: 24 bytes (values with outer momentum, all values, bytes of frozen
                     parameters; little endian), then the `FileLayout` as members told it; job.json has its SHA-256
model.safetensors    after the last round, once the job has finished
best.safetensors     after the best one, where that is another
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from axonp2p.client.storage.checkpoints import Checkpoint
from axonp2p.client.storage.job_journal import JobJournal
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.disk_errors import not_writable
from axonp2p.errors import JobFailed, MalformedMessage, PeerMisbehaved
from axonp2p.files import replacing
from axonp2p.jobs.lifecycle import JobState
from axonp2p.kinds.train.record import TrainRecord
from axonp2p.training.messages import FileLayout
from axonp2p.training.state_transfer.checkpoint_file import LENGTH_BYTES, Model, header_length
from axonp2p.training.state_transfer.model_layout import MOST_BYTES, pack_layout, read_layout

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


def first_that_fits(states: Iterable[Checkpoint]) -> Checkpoint | None:
    """The first one that the disk has not damaged. Blocks."""
    return next((one for one in states if one.fits()), None)


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
    return f"axon resume {record.id}      (its peers tell it anew)"


def _values_in(kept: Checkpoint) -> int:
    with kept.path.open("rb") as file:
        begin = header_length(file.read(LENGTH_BYTES))
    return kept.path.stat().st_size - begin


def _replace(path: Path, content: bytes) -> None:
    with replacing(path, lasting=True) as file:
        file.write(content)
