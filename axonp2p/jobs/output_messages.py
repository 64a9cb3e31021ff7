"""Files that a job's program leaves for its client, on their way home: headers of frames that daemons carry unread.

client                                       worker of a peer
  | an order of the job's kind, with a request's number --> |
  | <------------------ OutputPart ..., OutputFile, ...     |  file after file
  | <------------------ OutputsSent                         |
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated

import msgspec

from axonp2p.wire.codec import Message
from axonp2p.wire.quantities import Count

MOST_OUTPUTS = 256
"""Files that come home of one copy of a command, or of one member of a training."""
MOST_OUTPUT_BYTES = 2**30
"""Of all files of one copy. They lie in the sandbox's memory meanwhile, so a peer holds far fewer."""

FileNumber = Annotated[int, msgspec.Meta(ge=0, lt=MOST_OUTPUTS)]
OutputBytes = Annotated[int, msgspec.Meta(ge=0, le=MOST_OUTPUT_BYTES)]
FileHash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


@dataclass(frozen=True)
class OutputBounds:
    """The files that come home of one program, at the most."""

    files: int = MOST_OUTPUTS
    bytes: int = MOST_OUTPUT_BYTES


TASK_FILES = OutputBounds(bytes=16 * 2**20)
"""Of the files that the task of a training writes at one member."""


def file_name_hash(path: str, sha256: bytes) -> bytes:
    """The hash for a file of that name with that content: SHA-256 of the name, a zero byte and its own SHA-256."""
    return hashlib.sha256(path.encode() + b"\0" + sha256).digest()


class OutputPart(Message, tag=True, frozen=True):
    """The next bytes of a file, as payload. Files come one after the other."""

    request: Count
    """Of the order that asked for it."""
    number: FileNumber
    """Which file, from 0."""
    offset: OutputBytes


class OutputFile(Message, tag=True, frozen=True):
    """The file is complete: all its parts came before."""

    request: Count
    """Of the order that asked for it."""
    number: FileNumber
    """Which file, from 0."""
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """Below AXON_OUT, with forward slashes."""
    size: OutputBytes
    """In bytes."""
    sha256: FileHash
    """Of all its bytes."""


class OutputsSent(Message, tag=True, frozen=True):
    """There are no more files."""

    request: Count
    """Of the order that asked for it."""
    files: Annotated[int, msgspec.Meta(ge=0, le=MOST_OUTPUTS)]
    """How many came."""
    left_out: Count = 0
    """Files that fit too, and did not come: too many, too large, or with a name that no file may have."""


OutputMessage = OutputPart | OutputFile | OutputsSent
