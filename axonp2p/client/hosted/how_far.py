"""How far a hosted job is: what of its work is kept here, or at a host, whatever its kind.

Work is kept as states (`client.storage.checkpoints`), or as results, some of which have files in a folder of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import SettingsError
from axonp2p.hosting.folder_files import is_packed, newest_rounds
from axonp2p.hosting.messages import FolderFile
from axonp2p.jobs.kinds import KINDS, load
from axonp2p.jobs.lifecycle import JobState
from axonp2p.plain_text import plural


def lacking_outputs(folder: JobFolder, record: JobRecord) -> dict[str, int]:
    """The folders with files of its results that are not here, each with its bytes, those of older results first."""
    if not (outputs := KINDS[record.kind].outputs):
        return {}
    named: dict[str, int] = load(outputs)(record, folder.path)
    return {name: size for name, size in named.items() if not (folder.path / name).is_dir()}


def has_result(folder: JobFolder) -> bool:
    """Whether its result is here."""
    try:
        record = folder.read()
        there = record.state is JobState.FINISHED and has_files(folder, record)
        return there and not lacking_outputs(folder, record)
    except SettingsError:
        return False


def has_files(folder: JobFolder, record: JobRecord) -> bool:
    """Whether the first file of its result is here."""
    return all((folder.path / name).exists() for name in KINDS[record.kind].result_files[:1])


def left_folders(folder: JobFolder, record: JobRecord) -> dict[str, int]:
    """The folders with files that its programs left at peers, each with its most bytes, here or not."""
    left_files = KINDS[record.kind].left_files
    return load(left_files)(record, folder.path) if left_files else {}


def kept_here(folder: JobFolder) -> int | None:
    """Units of its work with which it could go on here; None: with none."""
    if states := folder.checkpoints(1).all():
        return states[0].rounds
    try:
        record = folder.read()
        packed = bool(KINDS[record.kind].unpack) and has_files(folder, record)
        return (_results_in(record, packed=packed) - len(lacking_outputs(folder, record))) or None
    except SettingsError:
        return None


def kept_there(files: Iterable[FolderFile], record: JobRecord | None) -> int | None:
    """The same of a host with these files."""
    packed = any(is_packed(file.name) for file in files)
    return newest_rounds(files) or (record and _results_in(record, packed=packed)) or None


def _results_in(record: JobRecord, *, packed: bool) -> int:
    """`packed`: results that travel so are there."""
    return record.kept if packed or KINDS[record.kind].outputs else 0


def after_text(kept: int | None, folder: JobFolder, otherwise: str) -> str:
    """After what it goes on; `otherwise`: when nothing is kept."""
    if kept is None:
        return otherwise
    try:
        unit = KINDS[folder.read().kind].unit
    except SettingsError:  # nothing is known of it here
        unit = "unit"
    return f"after {plural(kept, unit)}"
