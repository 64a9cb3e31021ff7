"""Which host carries a job on: written in the job's folder here, so that every command knows whom to ask."""

from __future__ import annotations

import shutil

import msgspec

from axonp2p.client.hosted.how_far import has_result, kept_there, left_folders
from axonp2p.client.storage.job_record import JobRecord
from axonp2p.client.storage.job_store import JobFolder
from axonp2p.disk_errors import fix_of, not_writable
from axonp2p.errors import SettingsError
from axonp2p.files import write_whole
from axonp2p.hosting.host import Host
from axonp2p.hosting.messages import FolderState, HostRole
from axonp2p.identity.peer_id import PeerId
from axonp2p.jobs.kinds import KINDS
from axonp2p.transport.address import PinnedAddress
from axonp2p.wire.json_form import decode_json
from axonp2p.wire.quantities import Count, UnixMoment

FILE_NAME = "hosted.json"
ARRIVING = ".arriving"
"""The folder in a job's folder in which files of a result become whole."""


class OtherHost(msgspec.Struct, frozen=True, kw_only=True):
    """A second host of the job."""

    tracker: str
    """Its address."""
    host: PeerId
    kept: Count | None = None
    """Rounds in the newest state, or results, that it has, when it last told; None: none that are known."""

    @property
    def place(self) -> Host:
        """Where to ask. Raises `SettingsError`."""
        return Host(PinnedAddress.parse(self.tracker), self.host)


class HostedMark(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of hosted.json. The folder beside it is a copy of the one at the host, as old as `asked` says."""

    tracker: str
    """The host's address."""
    host: PeerId
    at_work: bool = True
    """Whether a process worked on it there."""
    trouble: str = ""
    """Why the host has given it up."""
    asked: UnixMoment = 0.0
    """When it last told, Unix seconds; 0: never."""
    role: HostRole = "host"
    """Its part in the job, by its own word."""
    kept: Count | None = None
    """Rounds in the newest state, or results, that it has; None: none that are known."""
    standby: OtherHost | None = None
    """The one that keeps a copy."""
    without_copy: str = ""
    """Why none does, as it was when the job was handed over."""
    former: OtherHost | None = None
    """The one that the job was taken from, because it did not answer: to be told when it does."""
    left_files_of: UnixMoment = 0.0
    """When the record was written (`JobRecord.updated`) of which the files are here that the job's programs left, and
    the results that travel packed."""

    @property
    def place(self) -> Host:
        """Where to ask. Raises `SettingsError`."""
        return Host(PinnedAddress.parse(self.tracker), self.host)


def read_mark(folder: JobFolder) -> HostedMark | None:
    """The mark of its host; None for a job of this computer. Raises `SettingsError`."""
    path = folder.path / FILE_NAME
    try:
        return decode_json(path.read_bytes(), HostedMark)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}", fix=fix_of(error, path)) from error
    except msgspec.DecodeError as error:
        fix = f"move {path} away: then it is a job of this computer; axon jobs --hosted finds its host again"
        raise SettingsError(f"{path} cannot be read: {error}", fix=fix) from error


def write_mark(folder: JobFolder, mark: HostedMark) -> None:
    """Replace it. Raises `SettingsError`."""
    try:
        write_whole(folder.path / FILE_NAME, msgspec.json.format(msgspec.json.encode(mark), indent=2) + b"\n")
    except OSError as error:
        raise not_writable(folder.path, error) from error


def looked_at(
    folder: JobFolder,
    host: Host,
    told: FolderState,
    record: JobRecord | None,
    now: float,
    left_files_of: float | None = None,
) -> HostedMark:
    """Write down what a host told of the job just now, the one that carries it on or the one with the copy."""
    known, kept = read_mark(folder), kept_there(told.files, record)
    if known and known.standby and known.standby.host == host.peer:
        mark = msgspec.structs.replace(known, standby=msgspec.structs.replace(known.standby, kept=kept))
    else:
        same = known if known and known.host == host.peer else HostedMark(tracker=str(host.address), host=host.peer)
        mark = msgspec.structs.replace(
            same,
            tracker=str(host.address),
            at_work=told.at_work,
            trouble=told.trouble,
            asked=now,
            role=told.role,
            kept=kept,
        )
    if left_files_of is not None:
        mark = msgspec.structs.replace(mark, left_files_of=left_files_of)
    write_mark(folder, mark)
    return mark


def has_all(folder: JobFolder) -> bool:
    """Whether the result of a hosted job is here, the last one, and with it what the job's programs left at peers."""
    if not has_result(folder):
        return False
    record, mark = folder.read(), read_mark(folder)
    may_change = KINDS[record.kind].unpack or left_folders(folder, record)
    return not may_change or (mark is not None and mark.left_files_of == record.updated)


def remove_mark(folder: JobFolder) -> None:
    """It is a job of this computer from now on."""
    (folder.path / FILE_NAME).unlink(missing_ok=True)
    shutil.rmtree(folder.path / ARRIVING, ignore_errors=True)


def is_at_work(folder: JobFolder) -> bool:
    """Whether some program works on the job: here, or at its host as far as that has told."""
    mark = read_mark(folder)
    return folder.is_held() if mark is None else mark.at_work
