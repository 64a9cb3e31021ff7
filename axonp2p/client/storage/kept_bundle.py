"""The bundle that was kept of a job, held to what its files hashed to when the job was submitted."""

from __future__ import annotations

import msgspec

from axonp2p.blobs.manifest import Blob, read_manifest
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.errors import AxonError, JobFileWrong, SettingsError
from axonp2p.jobs.bundle import Bundle, collect
from axonp2p.jobs.spec import JobSpec, section_of


def spec_of(record: JobRecord) -> JobSpec:
    """The spec that the record says is to be done. Raises `SettingsError` for one that this program cannot do."""
    try:
        spec: JobSpec = msgspec.convert(record.spec, section_of(str(record.spec.get("kind"))).spec)
        return spec
    except (KeyError, msgspec.ValidationError) as error:
        raise SettingsError(
            f"job.json of {record.id} says what this version of axon does not know: {error}", fix="submit the job again"
        ) from error


def kept_bundle(folder: JobFolder, record: JobRecord, spec: JobSpec) -> Bundle:
    """Its files. Raises `JobFileWrong` when one is not what it was; which, where its manifest is whole."""
    fix = f"put it back into {folder.bundle} as it was, or submit the job again: axon submit {record.folder}"
    try:
        bundle = collect(folder.bundle, spec)
    except JobFileWrong as error:
        raise JobFileWrong(f"the copy that was kept of the job cannot be used: {error.message}", fix=fix) from error
    if record.bundle and bundle.blob.name.hex() != record.bundle:
        which = _which_differs(folder, record, bundle)
        raise JobFileWrong(f"the copy that was kept of the job is not what was submitted: {which}", fix=fix)
    return bundle


def _which_differs(folder: JobFolder, record: JobRecord, bundle: Bundle) -> str:
    try:
        was: Blob = read_manifest(folder.manifest.read_bytes(), bytes.fromhex(record.bundle))
    except (OSError, ValueError, AxonError):
        return "one of its files has changed"
    before = {file.path: file.blake3 for file in was.files}
    now = {file.path: file.hashes for file in bundle.files}
    names = [name for name in before | now if before.get(name) != now.get(name)]
    return f"{', '.join(names)} changed" if names else "one of its files has changed"
