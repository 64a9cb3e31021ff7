"""The record of a job: the whole of job.json, and how it is written so that no damage of it goes unseen.

Its last line is the SHA-256 of what is before it, and job.json.bak is a copy, written after it. One of the two is whole
after a crash at any moment; a damaged one is put aside when the job is gone on with.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec

from axonp2p.errors import NotFound, SettingsError
from axonp2p.files import put_aside, replacing
from axonp2p.jobs.kinds import KINDS, UNLESS_SAID, load
from axonp2p.jobs.lifecycle import JobState
from axonp2p.jobs.spec import JobSpec
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, Number, UnixMoment

_PEER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SUM = re.compile(rb',\n  "sha256": "([0-9a-f]{64})"\n}\n\Z')


class PeerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One peer of a job, for people and for `axon status`."""

    name: str
    peer: str
    rank: Count
    reservation: str
    rtt_s: Number
    lost: str = ""
    """Why it left before the end; empty while it is there."""
    paused: str = ""
    """Why it stands still now; empty while it works."""


class NumberedReceipts(msgspec.Struct, frozen=True, kw_only=True):
    """The receipts of one peer under one reservation."""

    reservation: str
    peer: str
    last: Count
    """The number of the last one that was written."""
    open: list[bytes]
    """Those that it has not signed."""


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, as it was shown."""

    code: str
    message: str
    cause: str = ""
    fix: str = ""


class _SpecKind(msgspec.Struct, frozen=True):
    kind: Annotated[str, msgspec.Meta(max_length=64)] = UNLESS_SAID


class _KindAlone(msgspec.Struct, frozen=True):
    spec: _SpecKind


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of job.json for a job of any kind; a kind's own record adds what it needs. Times are Unix seconds."""

    id: str
    name: str
    folder: str
    """Where it was submitted from."""
    spec: dict[str, Any]
    state: JobState
    created: UnixMoment
    updated: UnixMoment
    peers_wanted: Count
    peers: list[PeerRecord] = []
    reservations: list[str] = []
    tracker: str = ""
    wire_bytes: Count = 0
    credits: dict[str, Number] = {}
    """By peer; of counter-signed receipts."""
    model_sha256: str = ""
    """Of model.safetensors, once it is here; empty for kinds that have none."""
    best_sha256: str = ""
    """Of best.safetensors, which is there when the job has finished, unless its last round is the best."""
    receipts: list[NumberedReceipts] = []
    lives: Count = 0
    """How often its driver ran."""
    waits_for: list[str] = []
    """Paused peers without which it cannot go on."""
    error: ErrorRecord | None = None
    bundle: str = ""
    """The hash of its bundle's manifest; empty in records that are older than this field."""
    named_trackers: list[str] = []
    """Those that this client's owner named for its last life: commands about it stand in their networks, and it is
    resumed with them where none are named."""

    @property
    def kind(self) -> str:
        """Of the job."""
        return str(self.spec.get("kind", UNLESS_SAID))

    @property
    def peer_names(self) -> dict[str, str]:
        """By key, of all that it had in all of its lives: a name is one peer's.

        A host may have written this record, and files are made of names: those that no peer can have are left out.
        """
        return {peer.peer: peer.name for peer in self.peers if _PEER_NAME.fullmatch(peer.name)}

    @property
    def done(self) -> int:
        """How many units of its work are done: rounds, copies."""
        raise NotImplementedError

    @property
    def kept(self) -> int:
        """How many of them it would go on after."""
        return self.done

    @property
    def units(self) -> int:
        """Of how many."""
        raise NotImplementedError

    @classmethod
    def counts(cls, spec: JobSpec) -> dict[str, Any]:
        """Fields of a new record that its kind's section says."""
        raise NotImplementedError


def write_record(path: Path, record: JobRecord, *, lasting: bool = False) -> None:
    """Replace the file and its copy; `lasting`: returns once it is on the disk. Raises `OSError`."""
    content = _encoded(record)
    for one, lasts in ((path, lasting), (_copy_of(path), False)):
        with replacing(one, lasting=lasts) as file:
            file.write(content)


def read_record(path: Path) -> JobRecord:
    """The file's record, or its copy's when the file is damaged. Raises `NotFound` or `SettingsError`."""
    found, reasons = _looked_at(path)
    if found:
        return found[0]
    job = path.parent.name
    if not reasons:
        raise NotFound(f"there is no job {job}", fix="axon jobs lists those that there are")
    raise SettingsError(
        f"{path} cannot be read: {reasons.get(path, 'it is gone')}",
        cause="; ".join(f"{one.name}: {reason}" for one, reason in reasons.items() if one != path),
        fix=f"put a copy of it back, or submit the job's folder again; its states stay in {path.parent / 'states'}",
    )


def has_record(path: Path) -> bool:
    """Whether there is the file, or its copy."""
    return path.exists() or _copy_of(path).exists()


def mend_record(path: Path) -> list[tuple[str, Path | None]]:
    """Put aside which of both cannot be read, and write it again from the other; their names, and where they lie now.

    Raises as `read_record`, and `OSError`.
    """
    record = read_record(path)
    whole = _encoded(record)
    mended: list[tuple[str, Path | None]] = []
    for one in (path, _copy_of(path)):
        try:
            _opened(one.read_bytes(), path.parent.name)
            continue
        except FileNotFoundError:
            aside = None
        except (ValueError, msgspec.DecodeError):
            aside = put_aside(one)
        with replacing(one, lasting=True) as file:
            file.write(whole)
        if aside or one == path:  # jobs that are older than copies have none
            mended.append((one.name, aside))
    return mended


def _looked_at(path: Path) -> tuple[list[JobRecord], dict[Path, str]]:
    """The records that can be read, those with a hash before those without; why the others cannot."""
    found: list[tuple[bool, JobRecord]] = []
    reasons: dict[Path, str] = {}
    for one in (path, _copy_of(path)):
        try:
            content = one.read_bytes()
            found.append((_SUM.search(content) is None, _opened(content, path.parent.name)))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, msgspec.DecodeError) as error:
            reasons[one] = str(error)
    return [record for _, record in sorted(found, key=lambda one: one[0])], reasons


def decode_record(content: bytes) -> JobRecord:
    """The record in a job.json, of any kind of job. Raises `msgspec.DecodeError`, or `ValueError`."""
    kind = KINDS.get(decode_json(content, _KindAlone).spec.kind)
    if kind is None:
        raise ValueError("it is of a kind of job that this version of axon does not know")
    record: JobRecord = decode_json(content, load(kind.record))
    return record


def _opened(content: bytes, job: str) -> JobRecord:
    """Those of older programs have no hash. Raises `ValueError` or `msgspec.DecodeError` for what is damaged."""
    if (told := _SUM.search(content)) and hashlib.sha256(content[: told.start()]).hexdigest().encode() != told[1]:
        raise ValueError("it is damaged: it does not have its hash")
    record = decode_record(content)
    if record.id != job:
        raise ValueError(f"it is the record of {record.id}")
    return record


def _encoded(record: JobRecord) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(record), indent=2).removesuffix(b"\n}")
    return text + b',\n  "sha256": "%s"\n}\n' % hashlib.sha256(text).hexdigest().encode()


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def new_record(job: str, spec: JobSpec, folder: str, now: float, bundle: bytes = b"") -> JobRecord:
    """Of a job for which nothing is done yet.

    `folder` is where people find what was submitted; `now` is Unix time; `bundle` is what its manifest hashes to.
    """
    record: JobRecord = load(KINDS[spec.kind].record)(
        id=job,
        name=spec.name,
        folder=folder,
        spec=msgspec.to_builtins(spec),
        state=JobState.SUBMITTED,
        created=now,
        updated=now,
        peers_wanted=spec.need.peers,
        bundle=bundle.hex(),
        **load(KINDS[spec.kind].record).counts(spec),
    )
    return record
