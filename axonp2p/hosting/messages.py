"""The messages of a client and a host of its jobs, over a session."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from axonp2p.blobs.messages import Name
from axonp2p.identity.peer_id import PeerId, PeerIdOrNone
from axonp2p.jobs.messages import JobId
from axonp2p.wire.codec import Message

MOST_HOSTED = 500
MOST_FOLDER_FILES = 300
LONGEST_FILE_NAME = 120
KEY_BYTES = 32
LAST_BYTES = 4096

FileName = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_FILE_NAME)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**50)]
Digest = Annotated[bytes, msgspec.Meta(max_length=32)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]
HostedWish = Literal["pause", "leave", "stop", "cancel", "resume", "fetched"]
HostRole = Literal["host", "copy", "took over"]
"""`copy`: it keeps a copy of what another host has of the job; `took over`: it kept one, and is the host by now."""


class HostOffer(Message, frozen=True):
    """Answers GET /v1/hosting: who hosts here, and how much."""

    host: PeerId
    """The key that answers sessions here."""
    jobs: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    """How many jobs it holds at the most; 0: it hosts none."""
    free: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    """For how many there is room now."""
    disk_mb: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    """MiB that each may take there."""
    days: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    """For how long a job may run there, and for how long it is kept afterwards."""


class HostJob(Message, tag=True, frozen=True):
    """Carry this job on. The payload is the bundle's encoded `Manifest`."""

    job: JobId
    blob: Name
    """The bundle's name: SHA-256 of the payload."""
    key: Annotated[bytes, msgspec.Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]
    """The secret half of the job's own key. The client's own is not among what travels."""
    copies: PeerIdOrNone = ""
    """Do not begin: keep a copy of what the host with this key has of the job, until its owner says `resume`."""


class JobHosted(Message, tag=True, frozen=True):
    """The whole bundle is there, and the job runs, or its copy is kept from now on."""

    job: JobId


class AskJobs(Message, tag=True, frozen=True):
    """Which jobs of mine do you hold?"""


class HostedJob(Message, frozen=True):
    """One job that a host holds."""

    job: JobId
    at_work: bool
    """Whether a process works on it, or is about to."""
    role: HostRole = "host"
    """The role of this host: `host`, `copy`, or `took over` if it kept a copy and now continues the job."""


class HostedJobs(Message, tag=True, frozen=True):
    """All jobs of the caller."""

    jobs: Annotated[list[HostedJob], msgspec.Meta(max_length=MOST_HOSTED)]
    """Those whose bundles are whole."""


class AskFolder(Message, tag=True, frozen=True):
    """Asks for the contents of this job's folder."""

    job: JobId
    record: Digest = b""
    """SHA-256 of the job.json that the asker has; empty: it has none."""


class FolderFile(Message, frozen=True):
    """A file of a job's folder."""

    name: FileName
    """One of those that `hosting/folder_files.py` knows."""
    size: Size
    """Bytes."""
    last: Digest = b""
    """SHA-256 of its last 4 KiB, where it is one that grows: it may have been written anew and be as long as before."""


class FolderState(Message, tag=True, frozen=True):
    """The contents now. The payload is job.json, or nothing if the asker has the same."""

    job: JobId
    at_work: bool
    """Whether a process works on it, or is about to. When none does, nothing will change by itself."""
    trouble: Text
    """Why the host has given the job up; empty when it has not."""
    files: Annotated[list[FolderFile], msgspec.Meta(max_length=MOST_FOLDER_FILES)]
    """All but job.json."""
    role: HostRole = "host"
    """The role of this host: `host`, `copy`, or `took over` if it kept a copy and now continues the job."""


class AskPart(Message, tag=True, frozen=True):
    """The bytes of this file from there on."""

    job: JobId
    name: FileName
    """As `FolderState` has it; or `out/3`, the files of one result as `hosting/packed_folder.py` packs them."""
    offset: Size
    before: Digest = b""
    """SHA-256 of the bytes before `offset` as the asker has them; empty: nobody need compare."""


class HostedFilePart(Message, tag=True, frozen=True):
    """As many of them as fit a frame, as payload; none at the end of the file."""

    offset: Size
    """Where they begin. 0 instead of what was asked: what the asker has is not what is there."""


class TellJob(Message, tag=True, frozen=True):
    """The order for the job."""

    job: JobId
    wish: HostedWish
    """`pause` after the round that runs, `leave` now, `cancel` for good, `resume`; `fetched`: it may be forgotten."""


class JobTold(Message, tag=True, frozen=True):
    """It was passed on."""

    job: JobId


HostAsk = HostJob | AskJobs | AskFolder | AskPart | TellJob
"""With what a client begins, and begins again, on one session."""
