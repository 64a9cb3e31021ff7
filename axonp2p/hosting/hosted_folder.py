"""A hosted job on the host's disk.

    HOSTED/<owner>/<job>/
      hosted.json        whose it is, since when, and how it stands (`HostedRecord`)
      manifest           the bundle's, so that pieces that come after a cut find their place
      work.log           what its process said that nobody else heard
      home/              the home of a client that has this one job
        client.key       the job's own key
        jobs/<job>/      as at a client's: bundle/, job.json, events.jsonl, ...

A door: methods block on the disk. Names that come from others are checked by `folder_files` before they become paths.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from axonp2p.blobs.manifest import Blob, read_manifest
from axonp2p.errors import AxonError, LimitReached, Refused
from axonp2p.files import replacing, write_whole
from axonp2p.hosting.folder_files import (
    BEST,
    EVENTS,
    GROWING_LIMIT,
    LAYOUT,
    LOGS,
    METRICS,
    MODEL,
    RECORD,
    RECORD_LIMIT,
    RESULTS,
    STATES,
    Kind,
    is_packed,
    kind_of,
)
from axonp2p.hosting.messages import LAST_BYTES, MOST_FOLDER_FILES, FolderFile, HostRole
from axonp2p.hosting.packed_folder import read_packed
from axonp2p.identity.peer_id import PeerId, PeerIdOrNone
from axonp2p.jobs.kinds import KINDS, UNLESS_SAID
from axonp2p.jobs.lifecycle import JobState, is_over
from axonp2p.plain_text import bytes_text
from axonp2p.wire.frame import PAYLOAD_LIMIT
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Line, UnixMoment

KEPT_FREE_BYTES = 256 * 2**20
"""No job gets the last of the host's disk, whatever the limits say."""

_HASHED_BYTES = 2**20
"""Of a file that is compared with a hash so many are in memory at a time."""

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class HostedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of hosted.json. Times are Unix seconds."""

    job: Line
    owner: PeerId
    source: Line
    """The IP address (or IPv6 household) that it came from."""
    blob: Line
    """The bundle's name, as hexadecimal digits."""
    began: UnixMoment
    arrived: bool = False
    over_since: UnixMoment = 0.0
    fetched: bool = False
    """Its owner has what came of it."""
    trouble: Line = ""
    """Why the host gave it up."""
    reader: PeerIdOrNone = ""
    """The public half of the job's own key: who proves that one may read, and no more."""
    copies: PeerIdOrNone = ""
    """The host whose copy this is; empty for a job that is carried on here."""
    copied: UnixMoment = 0.0
    """When it was copied last."""
    took_over: bool = False
    """It was a copy, until its owner had it go on here."""

    @property
    def role(self) -> HostRole:
        """The part of this host in the job."""
        return "copy" if self.copies else "took over" if self.took_over else "host"


@dataclass(frozen=True)
class HostedProgress:
    """The part of a job.json that the host reads: where the job is, and no more."""

    state: JobState
    done: int
    """Units of its work."""
    packed: bool = True
    """Whether its results can be fetched, once it is over."""

    @property
    def over(self) -> bool:
        """Whether no process is to work on it."""
        return is_over(self.state)


class HostedFolder:
    """One hosted job's folder."""

    def __init__(self, hosted: Path, owner: PeerId, job: str) -> None:
        """Raises `Refused` for an id that cannot name a folder."""
        if not _JOB.fullmatch(job):
            raise Refused("that is no job's id")
        self.path = hosted / owner / job
        self.home = self.path / "home"
        self.job = self.home / "jobs" / job
        self.bundle = self.job / "bundle"
        self.log = self.path / "work.log"
        self._record = self.path / "hosted.json"
        self._manifest = self.path / "manifest"

    def make(self, record: HostedRecord, blob: Blob, key_seed: bytes) -> None:
        """Make it, for its owner alone. Raises `LimitReached` when the disk takes it not."""
        self.remove()  # what a crash left of it before it had a record
        try:
            self.path.mkdir(mode=0o700, parents=True)
            if blob.size + KEPT_FREE_BYTES > shutil.disk_usage(self.path).free:
                raise LimitReached(f"this host's disk has no room for {bytes_text(blob.size)}")
            self.bundle.mkdir(parents=True)
            descriptor = os.open(self.home / "client.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(key_seed.hex() + "\n")
            write_whole(self._manifest, blob.encoded)
            self.write(record)
        except LimitReached:
            self.remove()
            raise
        except OSError as error:
            self.remove()
            raise LimitReached(f"this host cannot write the job: {error.strerror}") from error

    def read(self) -> HostedRecord | None:
        """Its record; None when there is none that can be read."""
        try:
            return decode_json(self._record.read_bytes(), HostedRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, record: HostedRecord) -> None:
        """Replace its record."""
        with replacing(self._record, lasting=True) as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def blob(self, record: HostedRecord) -> Blob | None:
        """The bundle's manifest; None when it cannot be read."""
        try:
            return read_manifest(self._manifest.read_bytes(), bytes.fromhex(record.blob))
        except (OSError, ValueError, AxonError):
            return None

    def progress(self) -> HostedProgress | None:
        """How far the job is; None before its process has written anything."""
        try:
            record = decode_json((self.job / RECORD).read_bytes(), dict[str, Any])
            kind = KINDS[({"kind": UNLESS_SAID} | record["spec"])["kind"]]
            packed = not kind.pack or bool(packed_in(self.job))
            return HostedProgress(JobState(record["state"]), int(record.get(kind.counter) or 0), packed)
        except (OSError, msgspec.DecodeError, LookupError, TypeError, ValueError):
            return None

    def bytes_used(self) -> int:
        """The bytes of all its files."""
        return bytes_under(self.path)

    def remove(self) -> None:
        """Forget it all."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            self.path.parent.rmdir()  # when it was the owner's last one

    # --- what its owner may copy ---

    def record_bytes(self) -> bytes:
        """job.json; empty when there is none."""
        try:
            with (self.job / RECORD).open("rb") as file:
                content = file.read(RECORD_LIMIT + 1)
        except OSError:
            return b""
        return content if len(content) <= RECORD_LIMIT else b""

    def listing(self) -> list[FolderFile]:
        """All files that travel, but job.json."""
        names = [EVENTS, METRICS, RESULTS, LAYOUT, MODEL, BEST]
        names += [path.name for path in packed_in(self.job)]
        names += sorted(f"{LOGS}/{path.name}" for path in self.job.glob(f"{LOGS}/*.log"))
        names += sorted(f"{STATES}/{path.name}" for path in self.job.glob(f"{STATES}/*.safetensors"))
        found = []
        for name in names:
            with suppress(OSError):
                found.append(seen_on_disk(self.job, name))
        return found[:MOST_FOLDER_FILES]

    def part(self, name: str, offset: int, before: bytes) -> tuple[int, bytes]:
        """Bytes of that file or folder from `offset` on; from 0 on when those before it do not hash to `before`.

        Of a folder that is not there it is nothing. Raises `Refused` when there is no such file.
        """
        kind = kind_of(name)
        if kind is None:
            raise Refused("no such file travels")
        most = GROWING_LIMIT if kind is Kind.GROWING else 2**62
        try:
            if kind is Kind.FOLDER:
                there = (self.job / name).is_dir()  # a refusal would end the session, and others are asked for on it
                return offset, read_packed(self.job / name, offset, PAYLOAD_LIMIT) if there else b""
            with os.fdopen(os.open(self.job / name, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                if before and kind is Kind.GROWING and (offset > most or not _begins_with(file, offset, before)):
                    offset = 0
                file.seek(offset)
                return offset, file.read(max(0, min(PAYLOAD_LIMIT, most - offset)))
        except OSError as error:
            raise Refused(f"there is no {name} now") from error


def seen_on_disk(folder: Path, name: str) -> FolderFile:
    """A file that travels, as it is in a job's folder, at either side. Raises `OSError` when there is none."""
    with (folder / name).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if kind_of(name) is not Kind.GROWING:
            return FolderFile(name=name, size=size)
        size = min(size, GROWING_LIMIT)
        file.seek(max(0, size - LAST_BYTES))
        return FolderFile(name=name, size=size, last=hashlib.sha256(file.read(min(size, LAST_BYTES))).digest())


def packed_in(folder: Path) -> list[Path]:
    """The files of packed results in a job's folder."""
    return sorted(path for path in folder.glob("results-*.packed") if is_packed(path.name))


def bytes_under(path: Path) -> int:
    """The bytes of all files in there."""
    used = 0
    for folder, _, files in os.walk(path):
        for file in files:
            with suppress(OSError):  # it was replaced meanwhile
                used += (Path(folder) / file).lstat().st_size
    return used


def _begins_with(file: BinaryIO, length: int, digest: bytes) -> bool:
    if os.fstat(file.fileno()).st_size < length:
        return False
    hasher, left = hashlib.sha256(), length
    while left and (piece := file.read(min(left, _HASHED_BYTES))):
        hasher.update(piece)
        left -= len(piece)
    return not left and hasher.digest() == digest


def all_folders(hosted: Path) -> list[tuple[HostedFolder, HostedRecord]]:
    """All that lie there and can be read."""
    found = []
    for path in sorted(hosted.glob("*/*/hosted.json")):
        folder = HostedFolder(hosted, path.parent.parent.name, path.parent.name)
        if record := folder.read():
            found.append((folder, record))
    return found
