"""`axon export`: the weights of a job, or of a file, in the form that other programs read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from axonp2p.client.storage.kept_bundle import kept_bundle, spec_of
from axonp2p.disk_errors import not_writable
from axonp2p.errors import SettingsError
from axonp2p.files import replacing
from axonp2p.jobs.kinds import KINDS
from client_cli.train.alone import alone

if TYPE_CHECKING:
    from axonp2p.client.job import Job
    from axonp2p.client.storage.job_store import JobFolder

MODULE = "axonp2p.kinds.train.local.export"
MODEL = "model.safetensors"


@contextmanager
def weights_of(job: Job, round: str | None) -> Iterator[Path]:
    """A file with the weights of a job, while inside. Raises as `Job.fetch`, and `SettingsError` where it has none."""
    kind = job.record.kind
    if not KINDS[kind].write_round:
        raise SettingsError(
            f"{job.id} is a job of kind {kind}, which has no weights", fix=f"axon fetch {job.id} -o OUT"
        )
    with tempfile.TemporaryDirectory(prefix="axon-export-") as scratch:
        yield job.fetch(scratch, round=round) / MODEL


def export_plain(weights: Path, out: Path, form: str) -> None:
    """Write them as a file: `safetensors`, or a state dict for `torch`. Raises `SettingsError`."""
    if not weights.is_file():
        raise SettingsError(f"there is no file {weights}", fix="axon fetch JOB -o OUT")
    out.parent.mkdir(parents=True, exist_ok=True)
    if form == "torch":
        with alone(weights.parent, [str(weights), "--format", form, "--out", str(out)], module=MODULE) as exporting:
            exporting.answer()
        return
    try:
        with replacing(out) as file, weights.open("rb") as source:
            shutil.copyfileobj(source, file)
    except OSError as error:
        raise not_writable(out, error) from error


def export_pretrained(folder: JobFolder, weights: Path, out: Path) -> str:
    """Write them as the model of the job's task does; which module of it did so, empty for the whole.

    Raises `TaskMistake`, and `SettingsError` where the model has no `save_pretrained`.
    """
    record = folder.read()
    if not folder.bundle.exists():
        fix = "on the computer that submitted it, or --format torch"
        raise SettingsError(f"the task of {record.id} is not on this computer", fix=fix)
    kept_bundle(folder, record, spec_of(record))
    with alone(folder.bundle, [str(weights), "--format", "pretrained", "--out", str(out)], module=MODULE) as exporting:
        return str(exporting.answer()["module"])
